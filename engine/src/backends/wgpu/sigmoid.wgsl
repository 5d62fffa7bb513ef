// What squashes numbers.

fn sigmoid_(v: f32) -> f32 {
    return 1.0 / (1.0 + exp_(-v));
}

fn tanh_(v: f32) -> f32 {
    let a = abs(v);
    if a < 0.25 {
        let s = v * v;
        return v * fma(s, fma(s, fma(s, fma(s, 2.1869489e-2, -5.3968254e-2), 1.33333333e-1), -3.33333333e-1), 1.0);
    }
    return sign(v) * (1.0 - 2.0 / (exp_(2.0 * min(a, 40.0)) + 1.0));
}

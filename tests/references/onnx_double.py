"""An ONNX graph in float64: the evaluator of the onnx package with ops of our own where it lacks one or is wrong.

A module: kokoro.py uses it. float32 weights keep their values; every sum and function is in float64.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


def ops():
    """Ops that the evaluator lacks, computes slowly, or gets wrong."""
    def op(domain, name, run):
        return type(name, (OpRun,), {"op_domain": domain, "_run": run})

    def norm(x, axis, eps):
        off = x - x.mean(axis, keepdims=True)
        return off / np.sqrt((off * off).mean(axis, keepdims=True) + eps)

    def skip_layer_norm(self, x, skip, gamma, beta=None, bias=None, epsilon=None):
        total = x + skip + (0 if bias is None else bias)
        y = norm(total, -1, epsilon) * gamma
        return (y if beta is None else y + beta,)

    def fast_gelu(self, x, bias=None):
        x = x if bias is None else x + bias
        return (0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))),)

    def fused_matmul(self, a, b, alpha=None, transA=None, transB=None, transBatchA=None, transBatchB=None):
        a = np.swapaxes(a, -1, -2) if transA else a
        b = np.swapaxes(b, -1, -2) if transB else b
        return ((1 if alpha is None else alpha) * (a @ b),)

    def conv(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        assert group in (None, 1) and w.ndim == 3
        x = np.pad(x[0], ((0, 0), (pads[0], pads[1])))
        taps, step, apart = w.shape[2], (strides or [1])[0], (dilations or [1])[0]
        rows = (x.shape[1] - apart * (taps - 1) - 1) // step + 1
        y = sum(w[:, :, t] @ x[:, t * apart:t * apart + (rows - 1) * step + 1:step] for t in range(taps))
        return ((y if b is None else y + b[:, None])[None],)

    def lstm(self, x, w, r, b=None, lens=None, h=None, c=None, p=None, **_):
        sigmoid = lambda v: 1 / (1 + np.exp(-v))
        outs, hidden = [], r.shape[2]
        for d in range(2):
            gates = x[:, 0] @ w[d].T + b[d, :4 * hidden] + b[d, 4 * hidden:]
            hd, cd, rows = np.zeros(hidden), np.zeros(hidden), [None] * len(x)
            for t in (range(len(x)) if d == 0 else reversed(range(len(x)))):
                i, o, f, g = np.split(gates[t] + r[d] @ hd, 4)
                cd = sigmoid(f) * cd + sigmoid(i) * np.tanh(g)
                hd = sigmoid(o) * np.tanh(cd)
                rows[t] = hd
            outs.append(np.stack(rows))
        y = np.stack(outs, 1)[:, :, None]
        return (y, y[-1], y[-1])  # only the first is used

    def conv_transpose(self, x, w, b=None, group=None, output_padding=None, pads=None, strides=None, **_):
        # The evaluator's own leaves out the row that output_padding adds.
        taps, step, rows = w.shape[2], strides[0], x.shape[2]
        depthwise = group == w.shape[0] and w.shape[1] == 1
        assert depthwise or group in (None, 1)
        more = (output_padding or [0])[0]
        y = np.zeros((w.shape[0] if depthwise else w.shape[1], (rows - 1) * step + taps + more))
        for t in range(taps):
            y[:, t:t + rows * step:step] += x[0] * w[:, :, t] if depthwise else w[:, :, t].T @ x[0]
        y = y[:, pads[0]:y.shape[1] - pads[1]]
        return ((y if b is None else y + b[:, None])[None],)

    return [op("", "Conv", conv), op("", "ConvTranspose", conv_transpose), op("", "LSTM", lstm),
            op("com.microsoft", "SkipLayerNormalization", skip_layer_norm),
            op("com.microsoft", "FastGelu", fast_gelu), op("com.microsoft", "FusedMatMul", fused_matmul)]


def in_double(net, outputs):
    """The part of a graph that the outputs need, in float64: `run(None, feed)` takes and gives numpy arrays."""
    need, nodes = set(outputs), []
    for n in reversed(net.graph.node):
        if need & set(n.output):
            nodes.insert(0, onnx.NodeProto.FromString(n.SerializeToString()))
            need |= set(n.input)
    made = {o: n for n in nodes for o in n.output}
    tensors = {t.name: numpy_helper.to_array(t) for t in net.graph.initializer if t.name in need}
    for n in nodes:
        if n.op_type == "DequantizeLinear":  # behind a look-up in a table of integers: look up the numbers
            look_up = made[n.input[0]]
            name, scale, zero = look_up.input[0], tensors[n.input[1]], tensors[n.input[2]]
            tensors[name + "/float"] = (tensors[name].astype(np.float32) - zero.astype(np.float32)) * scale
            look_up.input[0] += "/float"
            n.op_type, n.domain = "Identity", ""
            del n.input[1:], n.attribute[:]
        for a in n.attribute:
            if n.op_type == "Cast" and a.name == "to" and a.i == TensorProto.FLOAT:
                a.i = TensorProto.DOUBLE
            if a.HasField("t") and a.t.data_type == TensorProto.FLOAT:
                a.t.CopyFrom(numpy_helper.from_array(double(numpy_helper.to_array(a.t))))
    used = {i for n in nodes for i in n.input}
    weights = [numpy_helper.from_array(np.array(double(v), order="C"), k) for k, v in tensors.items() if k in used]
    inputs = [onnx.ValueInfoProto.FromString(i.SerializeToString()) for i in net.graph.input if i.name in used]
    for i in inputs:
        if i.type.tensor_type.elem_type == TensorProto.FLOAT:
            i.type.tensor_type.elem_type = TensorProto.DOUBLE
    outs = [helper.make_tensor_value_info(o, TensorProto.DOUBLE, None) for o in outputs]
    graph = helper.make_graph(nodes, "double", inputs, outs, weights)
    model = helper.make_model(graph, opset_imports=net.opset_import)
    model.ir_version = net.ir_version
    return ReferenceEvaluator(model, new_ops=ops())


def double(values):
    return values.astype(np.float64) if values.dtype == np.float32 else values

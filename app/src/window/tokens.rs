//! Every colour and size of the window, for both themes. Nothing else holds a literal of either kind.

use std::num::NonZeroUsize;

use eframe::egui::style::ScrollStyle;
use eframe::egui::{Color32, FontFamily, FontId, Stroke, TextStyle, Theme, Visuals};
use repartee_engine::latency::Metric;

/// A frame is laid out at most so often.
const PASSES: NonZeroUsize = NonZeroUsize::new(3).unwrap();
/// Smallest gap, and the unit of the others.
pub(super) const GAP: f32 = 6.0;
/// Between groups.
pub(super) const WIDE_GAP: f32 = 3.0 * GAP;
/// Round corners of bubbles and bars.
pub(super) const ROUND: u8 = 10;
/// Inner margin of bubbles.
pub(super) const BUBBLE_MARGIN: i8 = 10;
/// Bubbles leave this part of the width free on the other side.
pub(super) const BUBBLE_FREE: f32 = 0.18;
/// Diameter of the lamp that shows the state.
pub(super) const LAMP: f32 = 12.0;
/// Level meters.
pub(super) const METER: [f32; 2] = [84.0, 8.0];
/// Level meters where there is little room.
pub(super) const SHORT_METER: [f32; 2] = [36.0, 8.0];
/// Windows from this width on have long meters.
pub(super) const LONG_METERS: f32 = 680.0;
/// Windows from this width on have meters with names.
pub(super) const NAMED_METERS: f32 = 860.0;
/// Height of a row of the waterfall.
pub(super) const ROW: f32 = 20.0;
/// Between columns and between rows of the waterfall.
pub(super) const ROW_GAPS: [f32; 2] = [2.0 * GAP, 1.0];
/// Width of the waterfall's bars at the full length.
pub(super) const BARS: f32 = 120.0;
/// Height of the bars of the last turns.
pub(super) const CHART: f32 = 96.0;
/// Width of one of them, in turns.
pub(super) const CHART_BAR: f64 = 0.6;
/// Width of the settings.
pub(super) const SETTINGS: f32 = 320.0;
/// Width of the list of earlier conversations.
pub(super) const EARLIER: f32 = 240.0;
/// Both are there at once only where so much is left for the conversation; beside the overlay it is never narrower.
pub(super) const NARROW: f32 = 360.0;
/// The window when it is first opened: the conversation, and the overlay beside it.
pub(super) const WINDOW: [f32; 2] = [1120.0, 720.0];
/// No smaller than this.
pub(super) const SMALLEST_WINDOW: [f32; 2] = [560.0, 420.0];
/// Width of the overlay's content.
pub(super) const OVERLAY: f32 = 416.0;
/// The overlay's distance from what is around it.
pub(super) const OVERLAY_GAP: f32 = 12.0;
/// Height of the overlay's title, with its margins.
pub(super) const OVERLAY_TITLE: f32 = 64.0;
/// An empty conversation says what to do below this part of the window.
pub(super) const WELCOME: f32 = 0.25;
/// Width of what is said before there is a conversation.
pub(super) const PAGE: f32 = 780.0;

/// The colours of a theme.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    /// Behind the user's words.
    pub(super) user_bubble: Color32,
    /// Behind the reply.
    pub(super) reply_bubble: Color32,
    /// Words that were heard, or said.
    pub(super) text: Color32,
    /// Words that were not heard yet, and what is said on the side.
    pub(super) weak: Color32,
    /// The program listens.
    pub(super) listening: Color32,
    /// The user speaks.
    pub(super) hearing: Color32,
    /// It works.
    pub(super) thinking: Color32,
    /// It speaks.
    pub(super) speaking: Color32,
    /// It can't hear.
    pub(super) deaf: Color32,
    /// Something went wrong.
    pub(super) error: Color32,
    /// Behind a meter's bar.
    pub(super) groove: Color32,
    /// Behind a notice.
    pub(super) notice: Color32,
}

const DARK: Palette = Palette {
    user_bubble: Color32::from_rgb(0x24, 0x3b, 0x55),
    reply_bubble: Color32::from_rgb(0x2a, 0x2d, 0x33),
    text: Color32::from_rgb(0xf0, 0xf2, 0xf5),
    weak: Color32::from_rgb(0x9a, 0xa2, 0xad),
    listening: Color32::from_rgb(0x4c, 0xc3, 0x8a),
    hearing: Color32::from_rgb(0x52, 0xa8, 0xff),
    thinking: Color32::from_rgb(0xf5, 0xa6, 0x23),
    speaking: Color32::from_rgb(0xbf, 0x7a, 0xf0),
    deaf: Color32::from_rgb(0x8a, 0x90, 0x99),
    error: Color32::from_rgb(0xff, 0x6b, 0x6b),
    groove: Color32::from_rgb(0x3a, 0x3f, 0x47),
    notice: Color32::from_rgb(0x4a, 0x3c, 0x1c),
};

const LIGHT: Palette = Palette {
    user_bubble: Color32::from_rgb(0xd6, 0xe8, 0xfb),
    reply_bubble: Color32::from_rgb(0xee, 0xef, 0xf2),
    text: Color32::from_rgb(0x16, 0x1a, 0x20),
    weak: Color32::from_rgb(0x5c, 0x65, 0x70),
    listening: Color32::from_rgb(0x1f, 0x8a, 0x55),
    hearing: Color32::from_rgb(0x15, 0x6f, 0xd1),
    thinking: Color32::from_rgb(0xb4, 0x6a, 0x00),
    speaking: Color32::from_rgb(0x86, 0x3c, 0xc4),
    deaf: Color32::from_rgb(0x6b, 0x72, 0x7c),
    error: Color32::from_rgb(0xc6, 0x28, 0x28),
    groove: Color32::from_rgb(0xd4, 0xd8, 0xde),
    notice: Color32::from_rgb(0xfd, 0xf0, 0xd0),
};

/// The colours of `theme`.
pub(super) fn palette(theme: Theme) -> &'static Palette {
    match theme {
        Theme::Dark => &DARK,
        Theme::Light => &LIGHT,
    }
}

/// The colour of a stage in waterfall and bars: hearing blue, understanding green, answering amber, speaking violet.
pub(super) fn stage(metric: Metric, theme: Theme) -> Color32 {
    let [dark, light] = match metric {
        Metric::Capture => [0x2f6fb5, 0x9cc4ef],
        Metric::Vad => [0x3f8ad6, 0x6fa8e3],
        Metric::EndOfTurnWait => [0x6c7681, 0xb4bcc6],
        Metric::Encoder => [0x2f9e6b, 0x8fd3b3],
        Metric::TextDecoder => [0x49bd86, 0x55b98a],
        Metric::TranscriptWait => [0x7fd6ab, 0x2f8f62],
        Metric::Prefill => [0xb9771b, 0xf2cf91],
        Metric::FirstToken => [0xdb9527, 0xe5b052],
        Metric::FirstClause => [0xf5b955, 0xc98a1d],
        Metric::FirstChunk => [0x9a5fd0, 0xcfaaf0],
        Metric::OutputBuffer => [0xc492ee, 0xa673da],
        Metric::VoiceToVoice => [0x52a8ff, 0x156fd1],
    };
    let rgb: u32 = match theme {
        Theme::Dark => dark,
        Theme::Light => light,
    };
    Color32::from_rgb((rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8)
}

/// Text sizes and widget colours of both themes.
pub(super) fn apply(context: &eframe::egui::Context) {
    context.all_styles_mut(|style| {
        let font = |size| FontId::new(size, FontFamily::Proportional);
        style.text_styles = [
            (TextStyle::Small, font(12.0)),
            (TextStyle::Body, font(15.0)),
            (TextStyle::Button, font(14.0)),
            (TextStyle::Heading, font(19.0)),
            (TextStyle::Monospace, FontId::new(13.0, FontFamily::Monospace)),
        ]
        .into();
        // What is scrolled shows it, before anybody points there.
        style.spacing.scroll = ScrollStyle { floating_allocated_width: 0.0, ..ScrollStyle::thin() };
        style.spacing.item_spacing = [GAP, GAP].into();
        style.spacing.button_padding = [1.5 * GAP, GAP * 0.7].into();
    });
    // What is new takes one pass to be measured, one for its place, and one for what is held at its end above it.
    context.options_mut(|options| options.max_passes = PASSES);
    for theme in [Theme::Dark, Theme::Light] {
        context.set_visuals_of(theme, visuals(theme));
    }
}

fn visuals(theme: Theme) -> Visuals {
    let palette = palette(theme);
    let mut visuals = theme.default_visuals();
    visuals.override_text_color = Some(palette.text);
    visuals.selection.bg_fill = palette.hearing.gamma_multiply(0.45);
    visuals.selection.stroke = Stroke::new(1.0, palette.text);
    visuals.error_fg_color = palette.error;
    // A caret that blinks paints the window twice a second for nothing.
    visuals.text_cursor.blink = false;
    visuals
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast of two colours as WCAG 2.1 defines it.
    fn contrast(a: Color32, b: Color32) -> f32 {
        let luminance = |c: Color32| {
            let linear = |x: u8| {
                let x = f32::from(x) / 255.0;
                if x <= 0.040_45 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * linear(c.r()) + 0.7152 * linear(c.g()) + 0.0722 * linear(c.b())
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn words_can_be_read_on_what_is_behind_them() {
        for theme in [Theme::Dark, Theme::Light] {
            let p = palette(theme);
            let panel = visuals(theme).panel_fill;
            for behind in [p.user_bubble, p.reply_bubble, p.notice, panel] {
                assert!(contrast(p.text, behind) >= 7.0, "{theme:?} {behind:?}");
            }
            assert!(
                contrast(p.weak, p.reply_bubble) >= 4.5,
                "{theme:?}: {}",
                contrast(p.weak, p.reply_bubble)
            );
            for sign in [p.listening, p.hearing, p.thinking, p.speaking, p.deaf, p.error] {
                assert!(contrast(sign, panel) >= 3.0, "{theme:?} {sign:?}: {}", contrast(sign, panel));
            }
        }
    }
}

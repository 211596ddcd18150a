//! `crossbeam-channel`.

super::channel::cloned_channel! {
    /// `crossbeam_channel::bounded` and `unbounded`.
    Crossbeam, crossbeam_channel, "crossbeam-channel"
}

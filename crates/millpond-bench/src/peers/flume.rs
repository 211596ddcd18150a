//! `flume`.

super::channel::cloned_channel! {
    /// `flume::bounded` and `unbounded`.
    Flume, flume, "flume"
}

//! The name of a task. Cheap to copy, because names are inherited.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A static text, or a shared one.
#[derive(Clone)]
pub(crate) enum Name {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Name::Static(text) => text,
            Name::Shared(text) => text,
        }
    }
}

impl From<Cow<'static, str>> for Name {
    fn from(text: Cow<'static, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Name::Static(text),
            Cow::Owned(text) => Name::Shared(text.into()),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

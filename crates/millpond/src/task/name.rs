//! What a task is called. Cheap to copy, because names are inherited.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A name: one of the program's own texts, or a text that all who have it share.
#[derive(Clone)]
pub(crate) enum Name {
    Fixed(&'static str),
    Made(Arc<str>),
}

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Name::Fixed(text) => text,
            Name::Made(text) => text,
        }
    }
}

impl From<Cow<'static, str>> for Name {
    fn from(text: Cow<'static, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Name::Fixed(text),
            Cow::Owned(text) => Name::Made(text.into()),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

//! One program at a time: two would both answer what is said into the microphone.
//!
//! The first one holds a lock on a file beside the logs until it ends; the system takes the lock back however it ends.
//! Where a file system has no locks, everybody is taken for the first.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};

use anyhow::{Context, Result};

use super::{HOME_ENV, Home};

/// What talks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// A window.
    Window,
    /// `repartee talk`.
    Terminal,
}

/// The right to talk; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Instance {
    /// The lock; none where there are no locks.
    _file: Option<File>,
}

/// What came of asking for the right to talk.
#[derive(Debug)]
pub(crate) enum Claim {
    /// Nobody else talks.
    Granted(Instance),
    /// This one talks already; `None` if it can't be known which.
    Taken(Option<Front>),
}

/// What is written into the file, for the next one to say.
const NAMES: [(&str, Front); 2] = [("window", Front::Window), ("terminal", Front::Terminal)];

impl Instance {
    /// Asks for the right to talk. Does not wait.
    pub(crate) fn claim(home: &Home, front: Front) -> Claim {
        match Self::lock(home, front) {
            Ok(claim) => claim,
            Err(error) => {
                // Better two that answer than none.
                tracing::warn!("whether another Repartee talks is not known: {error:#}");
                Claim::Granted(Self { _file: None })
            }
        }
    }

    fn lock(home: &Home, front: Front) -> Result<Claim> {
        let path = &home.lock;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = open.with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {
                let name = NAMES.iter().find(|(_, known)| *known == front).map_or("", |(name, _)| name);
                file.set_len(0)
                    .and_then(|()| file.write_all(name.as_bytes()))
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Ok(Claim::Granted(Self { _file: Some(file) }))
            }
            Err(TryLockError::WouldBlock) => {
                // Some systems let nobody read what is locked.
                let mut name = String::new();
                let _ = file.take(64).read_to_string(&mut name);
                Ok(Claim::Taken(NAMES.iter().find(|(known, _)| *known == name).map(|(_, front)| *front)))
            }
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
            }
        }
    }
}

/// That another one talks, and what to do about it.
pub(crate) fn taken(front: Option<Front>) -> String {
    let (place, there) = match front {
        Some(Front::Window) => ("in another window", "Talk there, or close it and try again"),
        Some(Front::Terminal) => {
            ("in a terminal (`repartee talk`)", "Talk there, or end it with Ctrl-C and try again")
        }
        None => ("in another window or terminal", "Talk there, or close it and try again"),
    };
    format!(
        "Repartee is already open {place}. Two would both answer what you say. {there}; one with {HOME_ENV} set to \
         another folder runs beside it, with settings and conversations of its own."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_talks_and_the_other_knows_which() {
        let folder = tempfile::tempdir().expect("a folder");
        let (home, other) = (Home::at(folder.path()), Home::at(&folder.path().join("other")));
        let Claim::Granted(first) = Instance::claim(&home, Front::Terminal) else { panic!("nobody talks") };
        for front in [Front::Window, Front::Terminal] {
            let Claim::Taken(by) = Instance::claim(&home, front) else { panic!("one talks") };
            assert!(by == Some(Front::Terminal) || cfg!(windows), "{by:?}");
        }
        assert!(matches!(Instance::claim(&other, Front::Window), Claim::Granted(_)), "another home");
        drop(first);
        let Claim::Granted(_second) = Instance::claim(&home, Front::Window) else { panic!("nobody talks") };
        let Claim::Taken(by) = Instance::claim(&home, Front::Terminal) else { panic!("one talks") };
        assert!(by == Some(Front::Window) || cfg!(windows), "{by:?}");
        assert!(taken(by).starts_with("Repartee is already open in another window"), "{}", taken(by));
        assert!(taken(Some(Front::Terminal)).contains("Ctrl-C"));
    }

    #[test]
    fn without_a_place_for_the_lock_one_talks_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("home"), "").expect("a file");
        let home = Home::at(&folder.path().join("home"));
        assert!(matches!(Instance::claim(&home, Front::Window), Claim::Granted(_)));
    }
}

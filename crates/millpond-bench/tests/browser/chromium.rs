//! A real browser without a window: pages in, pictures and documents out.

use anyhow::{Context, Result, bail, ensure};
use std::env;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A page takes a few seconds on a busy machine. A browser that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the browser is called, here or there.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// A browser on this machine.
#[derive(Debug)]
pub(crate) struct Chromium {
    program: PathBuf,
    /// Its profile, which nobody else has.
    profile: tempfile::TempDir,
}

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) is_dark: bool,
}

/// A picture: how large, and its pixels in red, green and blue.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) pixels: Vec<[u8; 3]>,
}

impl Chromium {
    /// The browser; `None` if there is none.
    pub(crate) fn find() -> Result<Option<Self>> {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = env::split_paths(&path).collect();
        let candidates = NAMES
            .iter()
            .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        let Some(program) = candidates.into_iter().find(|program| program.is_file()) else {
            return Ok(None);
        };
        Ok(Some(Chromium {
            program,
            profile: tempfile::tempdir()?,
        }))
    }

    /// The document as it is once its scripts have run.
    pub(crate) fn document(&self, page: &Path, look: Look) -> Result<String> {
        self.run(page, look, "--dump-dom")
    }

    /// What a reader sees.
    pub(crate) fn picture(&self, page: &Path, look: Look, file: &Path) -> Result<Picture> {
        self.run(page, look, &format!("--screenshot={}", file.display()))?;
        Picture::read(file)
    }

    fn run(&self, page: &Path, look: Look, what: &str) -> Result<String> {
        // 0 is dark in the settings of its engine, and 1 is light.
        let scheme = u8::from(!look.is_dark);
        let mut child = Command::new(&self.program)
            // Root has no sandbox, and the page is our own.
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args(["--disable-dev-shm-usage", "--virtual-time-budget=3000"])
            .arg(format!("--user-data-dir={}", self.profile.path().display()))
            .arg(format!("--window-size={},{}", look.width, look.height))
            .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
            .arg(what)
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let mut output = child.stdout.take().context("the output is a pipe")?;
        let (sender, read) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let outcome = output.read_to_string(&mut text).map(|_| text);
            let _ = sender.send(outcome);
        });
        let Ok(text) = read.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            bail!("the browser has not come back for {PATIENCE:?}");
        };
        let status = child.wait()?;
        ensure!(status.success(), "the browser ended with {status}");
        Ok(text?)
    }
}

impl Picture {
    fn read(file: &Path) -> Result<Self> {
        let file = std::fs::File::open(file).context("the browser took no picture")?;
        let mut decoder = png::Decoder::new(std::io::BufReader::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let size = reader
            .output_buffer_size()
            .context("a picture of this size")?;
        let mut bytes = vec![0; size];
        let info = reader.next_frame(&mut bytes)?;
        let samples = info.color_type.samples();
        ensure!(samples >= 3, "a picture without colours");
        let pixels = bytes.chunks_exact(samples);
        Ok(Picture {
            width: info.width,
            height: info.height,
            pixels: pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect(),
        })
    }

    /// How many colours there are, each at least `least` times, with shades taken together.
    pub(crate) fn colours(&self, least: u32) -> usize {
        let mut times = vec![0_u32; 1 << 15];
        for pixel in &self.pixels {
            let [red, green, blue] = pixel.map(|part| usize::from(part >> 3));
            times[red << 10 | green << 5 | blue] += 1;
        }
        times.iter().filter(|&&times| times >= least).count()
    }

    /// How bright it is, from 0 to 255.
    pub(crate) fn brightness(&self) -> f64 {
        let sum: u64 = self
            .pixels
            .iter()
            .flatten()
            .map(|&part| u64::from(part))
            .sum();
        sum as f64 / (3 * self.pixels.len()).max(1) as f64
    }
}

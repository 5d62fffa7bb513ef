//! Hound writes, we read; hostile and damaged headers are made byte by byte.

use std::io::Cursor;

use proptest::prelude::*;

use super::*;

fn hound_bytes(channels: u16, bits: u16, sample_format: hound::SampleFormat, values: &[f32]) -> Vec<u8> {
    let spec = hound::WavSpec { channels, sample_rate: 22_050, bits_per_sample: bits, sample_format };
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
    for &value in values {
        match sample_format {
            hound::SampleFormat::Float => writer.write_sample(value).unwrap(),
            hound::SampleFormat::Int => {
                writer.write_sample((f64::from(value) * f64::from(1u32 << (bits - 1))) as i32).unwrap();
            }
        }
    }
    writer.finalize().unwrap();
    bytes.into_inner()
}

/// A WAV whose format chunk and data length are given freely.
fn crafted(format: &[u8], data_len: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"RIFF\0\0\0\0WAVEfmt ".to_vec();
    bytes.extend((format.len() as u32).to_le_bytes());
    bytes.extend(format);
    bytes.extend(b"data");
    bytes.extend(data_len.to_le_bytes());
    bytes.extend(data);
    bytes
}

fn format(tag: u16, channels: u16, rate_hz: u32, frame_bytes: u16, bits: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(tag.to_le_bytes());
    bytes.extend(channels.to_le_bytes());
    bytes.extend(rate_hz.to_le_bytes());
    bytes.extend((rate_hz.wrapping_mul(u32::from(frame_bytes))).to_le_bytes());
    bytes.extend(frame_bytes.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes
}

#[test]
fn every_depth_and_channel_count_becomes_the_same_mono() {
    let values = [0.0f32, 0.5, -0.5, 0.25, -1.0, 0.75];
    for channels in [1u16, 2, 6] {
        for (bits, sample_format) in [
            (8, hound::SampleFormat::Int),
            (16, hound::SampleFormat::Int),
            (24, hound::SampleFormat::Int),
            (32, hound::SampleFormat::Int),
            (32, hound::SampleFormat::Float),
        ] {
            let interleaved: Vec<f32> = values
                .iter()
                .flat_map(|v| (0..channels).map(move |c| v * [1.0, 0.5, -0.25][usize::from(c % 3)]))
                .collect();
            let expected: Vec<f32> = interleaved
                .chunks(usize::from(channels))
                .map(|frame| frame.iter().sum::<f32>() / frame.len() as f32)
                .collect();
            let audio = decode(&hound_bytes(channels, bits, sample_format, &interleaved)).unwrap();
            assert_eq!(audio.rate_hz, 22_050);
            assert!(audio.warnings.is_empty());
            assert_eq!(audio.samples.len(), expected.len());
            for (got, want) in audio.samples.iter().zip(&expected) {
                assert!(
                    (got - want).abs() <= 1.1 / f32::from(1u16 << (bits.min(14) - 1)),
                    "{bits} {got} {want}"
                );
            }
        }
    }
}

#[test]
fn companded_codes_follow_g711() {
    // Values of ITU-T G.711 tables 1a and 2a, scaled from 13 and 14 bits to 16.
    let a = crafted(&format(6, 1, 8_000, 1, 8), 4, &[0xD5, 0x55, 0xAA, 0x2A]);
    let got = decode(&a).unwrap().samples;
    assert_eq!(got, [8.0 / 32_768.0, -8.0 / 32_768.0, 32_256.0 / 32_768.0, -32_256.0 / 32_768.0]);
    let mu = crafted(&format(7, 1, 8_000, 1, 8), 4, &[0xFF, 0x7F, 0x80, 0x00]);
    let got = decode(&mu).unwrap().samples;
    assert_eq!(got, [0.0, 0.0, 32_124.0 / 32_768.0, -32_124.0 / 32_768.0]);
}

#[test]
fn written_files_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    let samples: Vec<f32> = (-100..=100).map(|i| i as f32 / 100.0).collect();
    write(&path, &samples, 24_000, Format::Float32).unwrap();
    let back = read_mono(&path).unwrap();
    assert_eq!((back.rate_hz, back.samples), (24_000, samples.clone()));
    // Written over an existing file; clipped, NaN as silence, 16-bit values exact.
    write(&path, &[2.0, -2.0, f32::NAN, 0.5, -1.0], 16_000, Format::Int16).unwrap();
    let back = read_mono(&path).unwrap();
    assert_eq!(back.samples, [32_767.0 / 32_768.0, -1.0, 0.0, 0.5, -1.0]);
    assert_eq!(back.duration_secs(), 5.0 / 16_000.0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no such folder").join("a.wav");
    let error = write(&missing, &[0.0], 16_000, Format::Int16).unwrap_err();
    assert!(matches!(&error, AudioError::Write { path, .. } if *path == missing), "{error}");
    // A folder stands where the file should go: the rename fails, nothing else is left.
    let occupied = folder.path().join("b.wav");
    std::fs::create_dir(&occupied).unwrap();
    assert!(write(&occupied, &[0.0], 16_000, Format::Int16).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_is_no_wav_says_so() {
    let reason = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
    assert_eq!(reason(b""), "not a WAV file: the file is empty");
    assert!(reason(b"OggS and more than twelve bytes").contains("\"OggS\""));
    assert!(reason(b"RIFF\0\0\0\0AVI LIST").contains("not a WAV"));
    assert!(reason(b"RIFF\0\0\0\0WAVE").contains("before its data chunk"));
    assert!(reason(&crafted(&format(2, 1, 8_000, 1, 4), 2, &[0; 2])).contains("format tag 2 with 4 bits"));
    assert!(matches!(decode(&crafted(&format(1, 1, 8_000, 2, 16), 0, &[])), Err(AudioError::NoSamples)));
    let missing = read_mono(Path::new("no/such/file.wav")).unwrap_err();
    assert!(missing.to_string().contains("no/such/file.wav"));
    assert!(matches!(read_mono(Path::new(".")), Err(AudioError::Read { .. })));
}

#[test]
fn contradicting_headers_name_the_field() {
    for (format, field) in [
        (format(1, 0, 8_000, 2, 16), "0 channels"),
        (format(1, 1, 0, 2, 16), "0 Hz"),
        (format(1, 3, 8_000, 4, 16), "4 bytes per frame"),
        (format(1, 1, 8_000, 0, 16), "0 bytes per frame"),
        (format(0xFFFE, 1, 8_000, 2, 16), "extensible"),
        (vec![1, 0, 1], "3 bytes"),
    ] {
        let error = decode(&crafted(&format, 4, &[0; 4])).unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    }
}

#[test]
fn lengths_are_not_believed() {
    let sound = [0u8, 64, 0, 192];
    // A header that promises 2 GB over four bytes costs four bytes and a warning.
    let audio = decode(&crafted(&format(1, 1, 8_000, 2, 16), 0x7000_0000, &sound)).unwrap();
    assert_eq!(audio.samples, [0.5, -0.5]);
    assert_eq!(audio.warnings, [Warning::Truncated { promised_frames: 0x3800_0000, found_frames: 2 }]);
    assert!(audio.samples.capacity() < 100_000);
    // Programs that write to a pipe leave the largest length: no warning for that.
    let audio = decode(&crafted(&format(1, 1, 8_000, 2, 16), u32::MAX, &sound)).unwrap();
    assert!(audio.warnings.is_empty());
    assert_eq!(audio.samples.len(), 2);
    // A chunk of 4 GB before the data is an error, not an hour of reading.
    let mut bytes = b"RIFF\0\0\0\0WAVELIST\xFF\xFF\xFF\xFF".to_vec();
    bytes.extend([0; 64]);
    assert!(matches!(decode(&bytes), Err(AudioError::BrokenHeader { offset: 12, .. })));
}

#[test]
fn odd_chunks_are_padded_and_data_after_the_sound_is_ignored() {
    let mut bytes = b"RIFF\0\0\0\0WAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
    bytes.extend(format(1, 1, 8_000, 2, 16));
    bytes.extend(b"data\x04\0\0\0\0\x40\0\xC0id3 \x02\0\0\0zz");
    assert_eq!(decode(&bytes).unwrap().samples, [0.5, -0.5]);
}

#[test]
fn samples_that_are_no_numbers_become_silence_and_huge_ones_are_clipped() {
    let mut data = Vec::new();
    for value in [0.25f32, f32::NAN, f32::NEG_INFINITY, 1e30, -0.25] {
        data.extend(value.to_le_bytes());
    }
    let audio = decode(&crafted(&format(3, 1, 8_000, 4, 32), data.len() as u32, &data)).unwrap();
    assert_eq!(audio.samples, [0.25, 0.0, -1.0, 1.0, -0.25]);
    assert_eq!(audio.warnings, [Warning::NotANumber { samples: 1 }, Warning::TooLarge { samples: 2 }]);
}

#[test]
fn cut_at_every_byte_reads_as_far_as_it_goes() {
    let whole = hound_bytes(2, 24, hound::SampleFormat::Int, &[0.5; 64]);
    let all = decode(&whole).unwrap().samples;
    let header = whole.len() - 64 * 3;
    for cut in 0..whole.len() {
        match decode(&whole[..cut]) {
            Ok(audio) => {
                assert_eq!(audio.samples, all[..(cut - header) / 6]);
                assert!(matches!(audio.warnings[..], [Warning::Truncated { promised_frames: 32, .. }]));
            }
            Err(_) => assert!(cut < header + 6, "{cut}"),
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..256), keep in 0usize..64) {
        let template = hound_bytes(1, 16, hound::SampleFormat::Int, &[0.5; 16]);
        let keep = keep.min(bytes.len()).min(template.len());
        bytes[..keep].copy_from_slice(&template[..keep]);
        if let Ok(audio) = decode(&bytes) {
            prop_assert!(audio.rate_hz > 0);
            prop_assert!(!audio.samples.is_empty());
            prop_assert!(audio.samples.iter().all(|s| s.is_finite()));
        }
    }
}

#[test]
fn only_files_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let error = write(folder.path(), &[0.0], 16_000, Format::Int16).unwrap_err();
    assert!(error.to_string().contains("another name"), "{error}");
    assert!(folder.path().is_dir());
}

#[cfg(unix)]
#[test]
fn links_stay_and_sockets_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("real.wav"), "old").unwrap();
    std::os::unix::fs::symlink(at("real.wav"), at("link.wav")).unwrap();
    write(&at("link.wav"), &[0.5; 8], 16_000, Format::Int16).unwrap();
    assert!(at("link.wav").is_symlink());
    assert_eq!(read_mono(&at("real.wav")).unwrap().samples, [0.5; 8]);

    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    assert!(write(&at("socket"), &[0.0], 16_000, Format::Int16).is_err());
    assert!(!at("socket").is_file());
}

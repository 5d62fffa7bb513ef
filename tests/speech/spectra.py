"""Spectrograms of our sentences above the peer's: one PNG for each sentence.

usage: spectra.py FOLDER VOICE COUNT    (FOLDER holds ours-VOICE-NN.wav and peer-VOICE-NN.wav)
"""
import os
import sys
import numpy as np
import soundfile as sf
from PIL import Image, ImageDraw
from scipy.signal import spectrogram

TOP_HZ, RANGE_DB, WIDTH, HEIGHT, BAND = 8000, 70, 1200, 280, 24


def picture(path):
    wave, rate = sf.read(path)
    loud = np.flatnonzero(np.abs(wave) > 0.02 * np.abs(wave).max())
    wave = wave[max(loud[0] - rate // 20, 0):loud[-1] + rate // 20]
    f, _, power = spectrogram(wave, rate, nperseg=600, noverlap=480, nfft=1024)
    level = 10 * np.log10(power[f <= TOP_HZ] + 1e-12)
    grey = np.clip((level - level.max() + RANGE_DB) / RANGE_DB, 0, 1)[::-1]
    return Image.fromarray((255 * (1 - grey)).astype(np.uint8)).resize((WIDTH, HEIGHT), Image.BILINEAR), len(wave) / rate


def main():
    folder, voice, count = sys.argv[1:4]
    for n in range(1, int(count) + 1):
        sheet = Image.new("L", (WIDTH, 2 * (HEIGHT + BAND)), 255)
        for row, engine in enumerate(("ours", "peer")):
            image, secs = picture(os.path.join(folder, f"{engine}-{voice}-{n:02}.wav"))
            sheet.paste(image, (0, row * (HEIGHT + BAND) + BAND))
            title = f"{engine}, {voice}, sentence {n}: {secs:.2f} s, 0 to {TOP_HZ} Hz, {RANGE_DB} dB"
            ImageDraw.Draw(sheet).text((4, row * (HEIGHT + BAND) + 6), title, fill=0)
        sheet.save(os.path.join(folder, f"spectra-{voice}-{n:02}.png"))


main()

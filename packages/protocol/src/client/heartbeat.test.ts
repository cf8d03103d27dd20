import { describe, expect, test } from 'bun:test'
import {
  HEARTBEAT_MS,
  INPUT_WINDOW_BYTES,
  MAX_INPUT_FRAME_BYTES,
  SILENCE_MS,
  START_WINDOW_BYTES,
} from '../limits.ts'
import { Heartbeat } from './heartbeat.ts'

/** A heartbeat that was welcomed at 0 and has sent its first ping. */
function welcomed(): Heartbeat {
  const heartbeat = new Heartbeat(HEARTBEAT_MS)
  heartbeat.opened(0)
  heartbeat.received(0)
  heartbeat.welcomed(0)
  expect(heartbeat.poll(0)).toBe(1)
  return heartbeat
}

/** Answers a ping after a while; returns the round-trip time. */
function answer(heartbeat: Heartbeat, id: number, nowMs: number): number | undefined {
  heartbeat.received(nowMs)
  return heartbeat.pong(id, nowMs)
}

describe('Heartbeat', () => {
  test('[H2] pings at once after the welcome and then every 15 s', () => {
    const heartbeat = welcomed()
    expect(answer(heartbeat, 1, 40)).toBe(40)
    expect(heartbeat.nextMs).toBe(15_000)
    expect(heartbeat.poll(14_999)).toBeUndefined()
    expect(heartbeat.poll(15_000)).toBe(2)
  })

  test('[H3] gives a fast path 10 s of silence after a ping', () => {
    const heartbeat = welcomed()
    answer(heartbeat, 1, 40)
    heartbeat.poll(15_000)
    expect(heartbeat.nextMs).toBe(25_000)
    expect(heartbeat.poll(24_999)).toBeUndefined()
    expect(heartbeat.poll(25_000)).toBe('dead')
  })

  test('[H3] gives a path it does not know 30 s', () => {
    const heartbeat = welcomed()
    expect(heartbeat.poll(29_999)).toBeUndefined()
    expect(heartbeat.poll(30_000)).toBe('dead')
  })

  test('[H3] finds a black hole soon even after a long idle time', () => {
    const heartbeat = welcomed()
    answer(heartbeat, 1, 40)
    for (let id = 2; id < 500; id += 1) {
      expect(heartbeat.poll((id - 1) * 15_000)).toBe(id)
      answer(heartbeat, id, (id - 1) * 15_000 + 40)
    }
    const lastMs = 499 * 15_000
    heartbeat.poll(lastMs)
    expect(heartbeat.nextMs).toBe(lastMs + 10_000)
  })

  test('[H1] takes any frame for a sign of life', () => {
    const heartbeat = welcomed()
    for (let nowMs = 9_000; nowMs < 500_000; nowMs += 9_000) {
      expect(heartbeat.poll(nowMs)).toBeUndefined()
      heartbeat.received(nowMs)
    }
  })

  test('[H3] forgives four times the silence it has seen, up to 120 s, and forgets it slowly', () => {
    const heartbeat = welcomed()
    answer(heartbeat, 1, 8_000)
    heartbeat.poll(15_000)
    expect(heartbeat.nextMs).toBe(15_000 + 32_000)
    answer(heartbeat, 2, 15_100)
    heartbeat.poll(30_000)
    expect(heartbeat.nextMs).toBe(30_000 + 16_000)
    answer(heartbeat, 3, 30_100)
    heartbeat.poll(45_000)
    expect(heartbeat.nextMs).toBe(45_000 + 10_000)
    const patient = welcomed()
    answer(patient, 1, 29_000)
    patient.poll(44_000)
    expect(patient.nextMs).toBe(44_000 + 116_000)
  })

  test('[H3] begins anew with each connection', () => {
    const heartbeat = welcomed()
    answer(heartbeat, 1, 29_000)
    heartbeat.opened(100_000)
    heartbeat.welcomed(100_000)
    expect(heartbeat.poll(100_000)).toBe(2)
    expect(heartbeat.nextMs).toBe(130_000)
  })

  test('[H2] takes only the answer to its last ping, once', () => {
    const heartbeat = welcomed()
    expect(answer(heartbeat, 7, 10)).toBeUndefined()
    expect(answer(heartbeat, 1, 20)).toBe(20)
    expect(answer(heartbeat, 1, 30)).toBeUndefined()
  })
})

describe('a path of 1 KB/s', () => {
  test('[H5] with a full window of output is not dead, from the first frame on', () => {
    const heartbeat = welcomed()
    const frameMs = START_WINDOW_BYTES / 4
    let pings = 0
    for (let nowMs = frameMs; nowMs < 3_600_000; nowMs += frameMs) {
      for (let atMs = heartbeat.nextMs; atMs < nowMs; atMs = heartbeat.nextMs) {
        expect(heartbeat.poll(atMs)).not.toBe('dead')
        pings += 1
      }
      heartbeat.received(nowMs)
      // The pong is queued after a window of output.
      if (nowMs % (4 * frameMs) === 0) heartbeat.pong(pings + 1, nowMs)
    }
    expect(pings).toBeGreaterThan(10)
  })

  test('[H5] with a full window of input is heard by the server in time, and hears its acks', () => {
    const frameMs = MAX_INPUT_FRAME_BYTES
    expect(frameMs).toBeLessThan(SILENCE_MS / 2)
    const heartbeat = welcomed()
    for (let sent = 0; sent <= 2 * INPUT_WINDOW_BYTES; sent += MAX_INPUT_FRAME_BYTES) {
      expect(heartbeat.poll(sent + frameMs - 1)).not.toBe('dead')
      heartbeat.received(sent + frameMs)
    }
  })
})

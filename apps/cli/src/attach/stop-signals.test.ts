import { expect, test } from 'bun:test'
import { StopSignals } from './stop-signals.ts'

test('a signal is the remote’s while attached, until somebody insists', () => {
  const signals = new StopSignals()
  expect([0, 1000, 1999].map((atMs) => signals.receive('attached', true, atMs))).toEqual([
    'forward',
    'forward',
    'detach',
  ])
})

test('signals that come slowly are all passed on', () => {
  const signals = new StopSignals()
  for (let atMs = 0; atMs < 60_000; atMs += 1600)
    expect(signals.receive('attached', true, atMs)).toBe('forward')
})

test('the second one leaves while the link is down, however late it comes', () => {
  const signals = new StopSignals()
  expect(signals.receive('down', true, 0)).toBe('forward')
  expect(signals.receive('down', true, 60_000)).toBe('detach')
})

test('a link that came back starts the count again', () => {
  const signals = new StopSignals()
  signals.receive('down', true, 0)
  expect(signals.receive('attached', true, 10_000)).toBe('forward')
  expect(signals.receive('down', true, 20_000)).toBe('forward')
})

test('there is nobody to pass it on to before the first welcome, or without the right to', () => {
  expect(new StopSignals().receive('connecting', true, 0)).toBe('detach')
  expect(new StopSignals().receive('attached', false, 0)).toBe('detach')
})

import { expect, test } from 'bun:test'
import { TerminationSignals } from './termination-signals.ts'

test('forwards signals while attached, until they are repeated', () => {
  const signals = new TerminationSignals()
  expect([0, 1000, 1999].map((atMs) => signals.receive('attached', true, atMs))).toEqual([
    'forward',
    'forward',
    'detach',
  ])
})

test('forwards signals that are sent slowly', () => {
  const signals = new TerminationSignals()
  for (let atMs = 0; atMs < 60_000; atMs += 1600)
    expect(signals.receive('attached', true, atMs)).toBe('forward')
})

test('detaches at the second signal while the connection is down', () => {
  const signals = new TerminationSignals()
  expect(signals.receive('down', true, 0)).toBe('forward')
  expect(signals.receive('down', true, 60_000)).toBe('detach')
})

test('starts counting again after a reconnect', () => {
  const signals = new TerminationSignals()
  signals.receive('down', true, 0)
  expect(signals.receive('attached', true, 10_000)).toBe('forward')
  expect(signals.receive('down', true, 20_000)).toBe('forward')
})

test('detaches before the first attach, and for roles that cannot send signals', () => {
  expect(new TerminationSignals().receive('connecting', true, 0)).toBe('detach')
  expect(new TerminationSignals().receive('attached', false, 0)).toBe('detach')
})

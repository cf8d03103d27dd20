import { SandwireError } from '@sandwire/protocol'
import { expect, test } from 'bun:test'
import { bannerOf, statusItems } from './terminal-status.ts'

const exit = { type: 'exit', outputEnd: 0, truncated: false } as const

test('has no banner while attached', () => {
  expect(bannerOf({ status: { kind: 'attached', session: 's', role: 'driver' } })).toBeUndefined()
})

test('says when it reconnects', () => {
  expect(bannerOf({ status: { kind: 'reconnecting', attempt: 2, atMs: 5, why: 'x' } })).toEqual({
    kind: 'waiting',
    text: 'Connection lost.',
    untilMs: 5,
    isFirst: false,
  })
})

test('says how the process ended', () => {
  const textOf = (code: number | null, signal: string | null) =>
    bannerOf({ status: { kind: 'exited', exit: { ...exit, code, signal } } })
  expect(textOf(0, null)).toEqual({ kind: 'ended', text: 'Process exited with code 0', isGood: true })
  expect(textOf(3, null)).toMatchObject({ text: 'Process exited with code 3', isGood: false })
  expect(textOf(null, 'SIGKILL')).toMatchObject({ text: 'Process ended by SIGKILL', isGood: false })
})

test('says what to do about an error', () => {
  const error = new SandwireError('sandbox_stopped', 'The sandbox is stopped')
  expect(bannerOf({ status: { kind: 'failed', error } })).toMatchObject({
    text: 'The sandbox is stopped. Start the sandbox to continue.',
  })
})

test('tells an owner about the ended sign-in, and others that access was removed', () => {
  const error = new SandwireError('revoked', 'Cannot attach: the right to be here was withdrawn')
  const textOf = (isOwn: boolean) => bannerOf({ status: { kind: 'failed', error } }, { isOwn })
  expect(textOf(true)).toMatchObject({ text: expect.stringContaining('You were signed out') })
  expect(textOf(true)).not.toMatchObject({ text: expect.stringContaining('shared') })
  expect(textOf(false)).toMatchObject({ text: expect.stringContaining('Access was removed') })
})

test('reports a stopped or destroyed sandbox as such', () => {
  const status = { kind: 'exited', exit: { ...exit, code: null, signal: 'SIGHUP' } } as const
  const textOf = (isGone: boolean) => bannerOf({ status, isStopping: true }, { isGone })
  expect(textOf(false)).toMatchObject({ text: 'Sandbox stopped' })
  expect(textOf(true)).toMatchObject({ text: 'Sandbox destroyed' })
  expect(bannerOf({ status, isStopping: true, stopReason: 'removed' })).toMatchObject({
    text: 'Sandbox destroyed',
  })
})

test('reports a missing sandbox instead of a missing ticket', () => {
  const error = new SandwireError('sandbox_not_found', 'Cannot get a ticket: No sandbox has this id or name')
  expect(bannerOf({ status: { kind: 'failed', error } })).toMatchObject({
    text: expect.stringMatching(/^The sandbox was destroyed/),
  })
})

const attached = { kind: 'attached', session: 's', role: 'driver' } as const
const driven = { status: attached, role: 'driver', cols: 80, rows: 24, isSilent: false } as const
const textOf = (...input: Parameters<typeof statusItems>) => statusItems(...input).map(({ text }) => text)

test('shows role, size and round-trip time while attached', () => {
  expect(textOf(driven, undefined)).toEqual(['In control', '80×24'])
  expect(textOf(driven, 4.321)).toEqual(['In control', '80×24', '4.3 ms'])
  expect(textOf({ ...driven, role: 'viewer' }, 43.21)).toEqual(['View only', '80×24', '43 ms'])
})

test('shows no round-trip time while the server is silent', () => {
  expect(textOf({ ...driven, isSilent: true }, 5)).toEqual(['In control', '80×24', 'No response'])
})

test('shows no role while detached', () => {
  const lost = { kind: 'reconnecting', attempt: 1, atMs: 5, why: 'x' } as const
  expect(textOf({ ...driven, status: lost }, 5)).toEqual(['Disconnected'])
  const exit = { type: 'exit', code: 0, signal: null, outputEnd: 0, truncated: false } as const
  expect(textOf({ ...driven, status: { kind: 'exited', exit } }, 5)).toEqual(['Ended'])
})

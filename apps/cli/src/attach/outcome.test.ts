import { describe, expect, test } from 'bun:test'
import { SandwireError, type StopReason } from '@sandwire/protocol'
import { describeOutcome, type OutcomeContext } from './outcome.ts'

const DETAILS = { mode: 'pty', keepSeconds: 60, attachment: 'a1', authority: 'driver' } as const
const OPTIONS = {
  typedUrl: 'http://h',
  sandbox: 'dev',
  session: undefined,
  template: undefined,
  role: undefined,
  tokenFile: 't',
  isQuiet: false,
}
const BEFORE: OutcomeContext = {
  options: OPTIONS,
  credential: 'given' as const,
  program: 'sbx-stdio',
  session: undefined,
}
const AFTER: OutcomeContext = { ...BEFORE, session: { id: 's', details: DETAILS } }
const EXIT = { type: 'exit', code: 0, signal: null, outputEnd: 0, truncated: false } as const
const REATTACH = 'sbx-stdio http://h --session s --token-file t'

describe('describeOutcome', () => {
  test('prints nothing about a process that exited', () => {
    const outcome = { kind: 'exited', exit: { ...EXIT, code: 9 }, startFailure: undefined } as const
    expect(describeOutcome(outcome, AFTER)).toEqual({ code: 9, lines: [] })
  })

  test('prints why a process could not be started', () => {
    const startFailure = new SandwireError('command_not_found', 'Cannot start "x"\x1b[2J')
    const { code, lines } = describeOutcome(
      { kind: 'exited', exit: { ...EXIT, code: 127 }, startFailure },
      AFTER,
    )
    expect(code).toBe(127)
    expect(lines).toEqual([
      'sbx-stdio: Cannot start "x" [2J',
      expect.stringMatching(/^hint: check the spelling/),
    ])
  })

  test('hints at what a forbidden user can do instead', () => {
    const error = new SandwireError('forbidden', 'Cannot run this: the credential is not good for "exec"')
    const hintTo = (options: Partial<OutcomeContext['options']>): string =>
      describeOutcome({ kind: 'failed', error }, { ...BEFORE, options: { ...OPTIONS, ...options } })
        .lines[1] ?? ''
    expect(hintTo({})).toContain('sbx-stdio templates --url http://h')
    expect(hintTo({})).not.toContain('--role')
    expect(hintTo({ template: 't' })).toContain('sbx-stdio sessions dev --url http://h')
    expect(hintTo({ session: 's' })).toContain('--role viewer')
    expect(hintTo({ session: 's', role: 'viewer' })).not.toContain('--role')
  })

  test('prints how to reattach after detaching', () => {
    const kept = 'sbx-stdio: detached; the session is kept for 60 s, reattach with:'
    expect(describeOutcome({ kind: 'detached', reason: 'escape' }, AFTER)).toEqual({
      code: 0,
      lines: [kept, REATTACH],
    })
    expect(
      describeOutcome({ kind: 'detached', reason: 'SIGTERM' }, { ...AFTER, program: 'npx sbx-stdio' }),
    ).toEqual({
      code: 143,
      lines: [kept, `npx ${REATTACH}`],
    })
    const brief = { ...AFTER, session: { id: 's', details: { ...DETAILS, keepSeconds: 0 } } }
    expect(describeOutcome({ kind: 'detached', reason: 'escape' }, brief).lines).toEqual([
      'sbx-stdio: detached; the session ends',
    ])
  })

  test('prints nothing about detaching before the first attach, or when quiet', () => {
    expect(describeOutcome({ kind: 'detached', reason: 'SIGINT' }, BEFORE)).toEqual({ code: 130, lines: [] })
    const quiet = { ...AFTER, options: { ...OPTIONS, isQuiet: true } }
    expect(describeOutcome({ kind: 'detached', reason: 'escape' }, quiet)).toEqual({ code: 0, lines: [] })
  })

  test('prints one line and a hint for a failure, quiet or not', () => {
    const error = new SandwireError('link_lost', 'Cannot reach the server: no answer')
    const quiet = { ...BEFORE, options: { ...OPTIONS, isQuiet: true } }
    expect(describeOutcome({ kind: 'failed', error }, quiet)).toEqual({
      code: 255,
      lines: [
        'sbx-stdio: Cannot reach the server: no answer',
        expect.stringContaining('hint: check that the server is running'),
      ],
    })
    expect(describeOutcome({ kind: 'failed', error }, AFTER).lines).toEqual([
      'sbx-stdio: Connection lost: Cannot reach the server: no answer',
      `hint: ${REATTACH}`,
    ])
  })

  describe('when the sandbox was stopped', () => {
    const ended = {
      kind: 'exited',
      exit: { ...EXIT, code: null, signal: 'SIGHUP' },
      startFailure: undefined,
    } as const
    const stopped = (message: string, reason?: StopReason): OutcomeContext => ({
      ...AFTER,
      stopNotice: { message, reason },
    })

    test('reports it last, with how to start it again', () => {
      expect(describeOutcome(ended, stopped('The sandbox is stopping: asked to\x1b[2J'))).toEqual({
        code: 129,
        lines: [
          'sbx-stdio: The sandbox is stopping: asked to [2J',
          'hint: start it again: sbx-stdio start dev --url http://h',
        ],
      })
    })

    test('does not suggest to start a sandbox that was removed', () => {
      const { lines } = describeOutcome(ended, stopped('bye', 'removed'))
      expect(lines[1]).toBe('hint: its files were removed as well')
    })

    test('suggests --pin when the stop reason is idle, whatever the message says', () => {
      expect(
        describeOutcome(ended, stopped('it was idle and it is removed', 'requested')).lines[1],
      ).not.toContain('--pin')
      const { lines } = describeOutcome(ended, stopped('bye', 'idle'))
      expect(lines[1]).toBe(
        'hint: start it again: sbx-stdio start dev --url http://h; --pin keeps it running, and so does create NAME --sleep-after never',
      )
    })

    test('names the sandbox of the session, if it is known', () => {
      const options = { ...OPTIONS, sandbox: undefined }
      const id = `${'a'.repeat(32)}.${'b'.repeat(26)}`
      const inSandbox = { ...stopped('bye'), options, session: { id, details: DETAILS } }
      expect(describeOutcome(ended, inSandbox).lines[1]).toContain(`start ${'a'.repeat(32)} --url`)
      expect(describeOutcome(ended, { ...stopped('bye'), options }).lines[1]).toBe(
        'hint: start the sandbox, then run this again',
      )
    })

    test('reports it once if the connection fails with it, or the user detaches', () => {
      const error = new SandwireError('shutting_down', 'The sandbox is stopping')
      expect(describeOutcome({ kind: 'failed', error }, stopped('bye'))).toMatchObject({
        code: 255,
        lines: ['sbx-stdio: bye', expect.stringContaining('hint: start it again')],
      })
      expect(describeOutcome({ kind: 'detached', reason: 'escape' }, stopped('bye')).lines).toEqual([
        'sbx-stdio: bye',
        'hint: start it again: sbx-stdio start dev --url http://h',
      ])
    })
  })

  test('reports a failed write', () => {
    expect(describeOutcome({ kind: 'unwritable', errno: 'ENOSPC' }, AFTER)).toMatchObject({ code: 255 })
  })

  test('names the sandbox and the server in the hint', () => {
    const error = new SandwireError('sandbox_stopped', 'Cannot attach: sandbox is stopped')
    expect(describeOutcome({ kind: 'failed', error }, BEFORE).lines[1]).toBe(
      'hint: start it: sbx-stdio start dev --url http://h',
    )
    const joined = { ...BEFORE, options: { ...OPTIONS, sandbox: undefined, session: 'abc.def' } }
    expect(describeOutcome({ kind: 'failed', error }, joined).lines[1]).toContain('sbx-stdio start abc --url')
  })
})

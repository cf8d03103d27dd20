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
const COME_BACK = 'sbx-stdio http://h --session s --token-file t'

describe('conclude', () => {
  test('says nothing about a process that ended', () => {
    const outcome = { is: 'exited', exit: { ...EXIT, code: 9 }, startFailure: undefined } as const
    expect(describeOutcome(outcome, AFTER)).toEqual({ code: 9, lines: [] })
  })

  test('says why a process never ran', () => {
    const startFailure = new SandwireError('command_not_found', 'Cannot start "x"\x1b[2J')
    const { code, lines } = describeOutcome(
      { is: 'exited', exit: { ...EXIT, code: 127 }, startFailure },
      AFTER,
    )
    expect(code).toBe(127)
    expect(lines).toEqual([
      'sbx-stdio: Cannot start "x" [2J',
      expect.stringMatching(/^hint: check the spelling/),
    ])
  })

  test('calls what the server refuses as the command line does', () => {
    const error = new SandwireError('bad_request', 'Cannot use parameter "arg": more than 1023')
    expect(describeOutcome({ is: 'failed', error }, BEFORE)).toEqual({
      code: 2,
      lines: ['sbx-stdio: Cannot use option "--arg": more than 1023', 'hint: sbx-stdio --help'],
    })
  })

  test('tells who is refused what else they can do', () => {
    const error = new SandwireError('forbidden', 'Cannot run this: the credential is not good for "exec"')
    const hintTo = (options: Partial<OutcomeContext['options']>): string =>
      describeOutcome({ is: 'failed', error }, { ...BEFORE, options: { ...OPTIONS, ...options } }).lines[1] ??
      ''
    expect(hintTo({})).toContain('sbx-stdio templates --url http://h')
    expect(hintTo({})).not.toContain('--role')
    expect(hintTo({ template: 't' })).toContain('sbx-stdio sessions dev --url http://h')
    expect(hintTo({ session: 's' })).toContain('--role viewer')
    expect(hintTo({ session: 's', role: 'viewer' })).not.toContain('--role')
  })

  test('says how to come back after leaving', () => {
    const kept = 'sbx-stdio: detached; the session is kept for 60 s, come back with:'
    expect(describeOutcome({ is: 'left', why: 'escape' }, AFTER)).toEqual({
      code: 0,
      lines: [kept, COME_BACK],
    })
    expect(describeOutcome({ is: 'left', why: 'SIGTERM' }, { ...AFTER, program: 'npx sbx-stdio' })).toEqual({
      code: 143,
      lines: [kept, `npx ${COME_BACK}`],
    })
    const brief = { ...AFTER, session: { id: 's', details: { ...DETAILS, keepSeconds: 0 } } }
    expect(describeOutcome({ is: 'left', why: 'escape' }, brief).lines).toEqual([
      'sbx-stdio: detached; the session is not kept',
    ])
  })

  test('says nothing about leaving what was never reached, or when quiet', () => {
    expect(describeOutcome({ is: 'left', why: 'SIGINT' }, BEFORE)).toEqual({ code: 130, lines: [] })
    const quiet = { ...AFTER, options: { ...OPTIONS, isQuiet: true } }
    expect(describeOutcome({ is: 'left', why: 'escape' }, quiet)).toEqual({ code: 0, lines: [] })
  })

  test('says one line and a hint about a failure, quiet or not', () => {
    const error = new SandwireError('link_lost', 'The server cannot be reached: no answer')
    const quiet = { ...BEFORE, options: { ...OPTIONS, isQuiet: true } }
    expect(describeOutcome({ is: 'failed', error }, quiet)).toEqual({
      code: 255,
      lines: [
        'sbx-stdio: The server cannot be reached: no answer',
        expect.stringContaining('hint: check that the server runs'),
      ],
    })
    expect(describeOutcome({ is: 'failed', error }, AFTER).lines).toEqual([
      'sbx-stdio: Lost the connection for good: The server cannot be reached: no answer',
      `hint: ${COME_BACK}`,
    ])
  })

  describe('when the sandbox was stopped', () => {
    const ended = {
      is: 'exited',
      exit: { ...EXIT, code: null, signal: 'SIGHUP' },
      startFailure: undefined,
    } as const
    const stopped = (message: string, reason?: StopReason): OutcomeContext => ({
      ...AFTER,
      stopNotice: { message, reason },
    })

    test('says so last, and how to start it again', () => {
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
      expect(lines[1]).toBe('hint: its files were removed with it')
    })

    test('suggests --pin when the stop reason is idle, whatever the message says', () => {
      expect(
        describeOutcome(ended, stopped('it was idle and it is removed', 'requested')).lines[1],
      ).not.toContain('--pin')
      const { lines } = describeOutcome(ended, stopped('bye', 'idle'))
      expect(lines[1]).toBe(
        'hint: start it again: sbx-stdio start dev --url http://h; what runs with --pin keeps it awake, and so does create NAME --sleep-after never',
      )
    })

    test('names the sandbox that the session is in, and none where that is not known', () => {
      const options = { ...OPTIONS, sandbox: undefined }
      const id = `${'a'.repeat(32)}.${'b'.repeat(26)}`
      const joinLocalPath = { ...stopped('bye'), options, session: { id, details: DETAILS } }
      expect(describeOutcome(ended, joinLocalPath).lines[1]).toContain(`start ${'a'.repeat(32)} --url`)
      expect(describeOutcome(ended, { ...stopped('bye'), options }).lines[1]).toBe(
        'hint: start it again, then run this again',
      )
    })

    test('says it once where the connection ends with it, or somebody leaves', () => {
      const error = new SandwireError('shutting_down', 'The sandbox is stopping')
      expect(describeOutcome({ is: 'failed', error }, stopped('bye'))).toMatchObject({
        code: 255,
        lines: ['sbx-stdio: bye', expect.stringContaining('hint: start it again')],
      })
      expect(describeOutcome({ is: 'left', why: 'escape' }, stopped('bye')).lines).toEqual([
        'sbx-stdio: bye',
        'hint: start it again: sbx-stdio start dev --url http://h',
      ])
    })
  })

  test('says that the output could not be written', () => {
    expect(describeOutcome({ is: 'unwritable', errno: 'ENOSPC' }, AFTER)).toMatchObject({ code: 255 })
  })

  test('names the sandbox, and the server, in what to do about it', () => {
    const error = new SandwireError('sandbox_stopped', 'Cannot attach: sandbox is stopped')
    expect(describeOutcome({ is: 'failed', error }, BEFORE).lines[1]).toBe(
      'hint: start it: sbx-stdio start dev --url http://h',
    )
    const joined = { ...BEFORE, options: { ...OPTIONS, sandbox: undefined, session: 'abc.def' } }
    expect(describeOutcome({ is: 'failed', error }, joined).lines[1]).toContain('sbx-stdio start abc --url')
  })
})

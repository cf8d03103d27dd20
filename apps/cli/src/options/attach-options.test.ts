import { describe, expect, test } from 'bun:test'
import { decodeClient, limits } from '@sandwire/protocol'
import { validateEnv, parseArguments, type RunOptions } from './attach-options.ts'
import { UsageError } from '../errors/errors.ts'

const URL_TEXT = 'http://127.0.0.1:8080'

function read(...argv: string[]): RunOptions {
  const parsed = parseArguments([URL_TEXT, ...argv])
  if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed))
  return parsed
}

describe('parseArguments', () => {
  test('starts the login shell by default', () => {
    expect(read()).toMatchObject({
      cmd: undefined,
      args: [],
      isTty: undefined,
      role: undefined,
      takesOver: false,
    })
    expect(read().url.href).toBe('http://127.0.0.1:8080/attach')
  })

  test('pins a new session, not an existing one', () => {
    expect([read().isPinned, read('--pin').isPinned]).toEqual([false, true])
    expect(parseArguments([URL_TEXT, '--session', 's', '--pin'])).toMatchObject({
      kind: 'invalid',
      message: 'Option "--pin" cannot be used with "--session": the session is already running',
    })
  })

  test('accepts version as a command', () => {
    expect(parseArguments(['version'])).toEqual({ kind: 'version' })
    expect(parseArguments(['version', URL_TEXT])).toMatchObject({ kind: 'invalid' })
  })

  test('takes the command from --cmd and --arg, whatever the arguments look like', () => {
    const seed = [
      '--sandbox',
      'build-abc',
      '--cmd',
      'bash',
      '--arg',
      '-lc',
      '--arg',
      'npm test',
      '--arg',
      '--help',
    ]
    expect(read(...seed)).toMatchObject({
      sandbox: 'build-abc',
      cmd: 'bash',
      args: ['-lc', 'npm test', '--help'],
    })
  })

  test('takes everything after -- as the command', () => {
    expect(read('--no-tty', '--', 'ls', '--tty', '--')).toMatchObject({
      isTty: false,
      cmd: 'ls',
      args: ['--tty', '--'],
    })
  })

  test('parses every option, with = or a space', () => {
    const options = read(
      '--session=s.1',
      '--role',
      'viewer',
      '--take',
      '--retry-for=5',
      '--escape',
      '^a',
      '--token-file',
      'f',
      '--name=Ann B',
      '--quiet',
      '--tty',
    )
    expect(options).toMatchObject({
      session: 's.1',
      role: 'viewer',
      takesOver: true,
      retryForMs: 5000,
      escape: { byte: 1, label: 'Ctrl+A' },
      tokenFile: 'f',
      name: 'Ann B',
      isQuiet: true,
      isTty: true,
    })
    const created = read(
      '--keep',
      '0',
      '--overflow',
      'trim',
      '--cwd',
      'x',
      '--env',
      'A=b=c',
      '--env',
      'HOME',
      '--env=E=',
    )
    expect(created).toMatchObject({ keepSeconds: 0, overflow: 'trim', cwd: 'x' })
    expect(created.env).toEqual([
      ['A', 'b=c'],
      ['HOME', undefined],
      ['E', ''],
    ])
    expect(read('--escape', 'none').escape).toBeNull()
    expect(read('--token', '-starts-with-a-dash').token).toBe('-starts-with-a-dash')
  })

  test('creates the sandbox unless --no-create or --create=0 is given', () => {
    expect(read('--sandbox', 'dev').mayCreate).toBe(true)
    expect(read('--create=1').mayCreate).toBe(true)
    expect(read('--create=0').mayCreate).toBe(false)
    expect(read('--no-create').mayCreate).toBe(false)
  })

  test('parses a template and its parameters', () => {
    expect(read('--template', 't', '--param', 'a=b=c', '--param=__proto__=x')).toMatchObject({
      template: 't',
      params: JSON.parse('{"a":"b=c","__proto__":"x"}') as object,
    })
    expect(read()).toMatchObject({ template: undefined, params: {} })
  })

  test('accepts help and version at any position', () => {
    expect(parseArguments(['--bogus-free', '--help'])).toMatchObject({ kind: 'invalid' })
    for (const word of ['--help', '-h']) expect(parseArguments([URL_TEXT, word])).toEqual({ kind: 'help' })
    expect(parseArguments(['--version'])).toEqual({ kind: 'version' })
    expect(read('--', '--version').cmd).toBe('--version')
  })

  test.each([
    [['--bogus'], 'Unknown option "--bogus"'],
    [['-x'], 'Unknown option "-x"'],
    [['--tty=yes'], 'Unknown option "--tty"'],
    [['--bogus=secret'], 'Unknown option "--bogus"'],
    [['--sandbox'], 'needs a value'],
    [['--sandbox='], '"--sandbox" needs a value'],
    [['--session', ''], '"--session" needs a value'],
    [['--cmd', ''], '"--cmd" needs a value'],
    [['--cwd', ''], '"--cwd" needs a value'],
    [['--template', ''], '"--template" needs a value'],
    [['--', ''], 'no command'],
    [['--sandbox', '--cmd', 'x'], '"--sandbox" needs a value'],
    [['--arg', 'x'], '"--arg" needs "--cmd"'],
    [['--cmd', 'a', '--cmd', 'b'], 'given twice'],
    [['--cmd', 'a', '--', 'b'], 'not both'],
    [['--'], 'no command'],
    [['ls', '-la'], 'Unknown option "-la"'],
    [['ls'], 'after "--"'],
    [['--session', 's', '--', 'ls'], 'cannot be used with "--session"'],
    [['--session', 's', '--keep', '5'], '"--keep" cannot be used'],
    [['--role', 'boss'], 'must be viewer or collaborator or driver'],
    [['--keep', '-1'], 'whole seconds'],
    [['--keep', '1e3'], 'whole seconds'],
    [['--keep', '999999999'], 'whole seconds'],
    [['--retry-for', '1.5'], 'whole seconds'],
    [['--overflow', 'drop'], 'must be block or trim'],
    [['--escape', 'ctrl'], 'must be a key'],
    [['--env', '1A=x'], 'NAME=VALUE'],
    [['--name', 'a\x1b[31m'], 'printable'],
    [['--tty', '--no-tty'], 'not both'],
    [['--token', 'a', '--token-file', 'b'], 'not both'],
    [['--create', 'yes'], 'must be 0 or 1'],
    [['--create=1', '--no-create'], 'not both'],
    [['--session', 's', '--create=0'], '"--create" cannot be used'],
    [['--session', 's', '--template', 't'], '"--template" cannot be used'],
    [['--param', 'a=b'], 'needs "--template"'],
    [['--template', 't', '--param', 'a'], 'NAME=VALUE'],
    [['--template', 't', '--param', '=a'], 'NAME=VALUE'],
    [['--template', 't', '--param', 'a=1', '--param', 'a=2'], '"a" is given twice'],
    [['--template', 't', '--cmd', 'x'], 'not both'],
    [['--template', 't', '--', 'x'], 'not both'],
    [['--template', 't', '--cwd', 'x'], '"--cwd" cannot be used'],
    [['--template', 't', '--env', 'A=b'], '"--env" cannot be used'],
    [['--template', 't', '--tty'], 'cannot be used with "--template"'],
  ])('refuses %j', (argv, message) => {
    const parsed = parseArguments([URL_TEXT, ...argv])
    expect(parsed).toMatchObject({ kind: 'invalid' })
    expect(parsed.kind === 'invalid' ? parsed.message : '').toContain(message)
  })

  test('refuses a variable whose name is too long', () => {
    expect(parseArguments([URL_TEXT, '--env', `${'A'.repeat(257)}=x`])).toMatchObject({
      kind: 'invalid',
      message: 'The name of a variable may have 256 characters at most',
    })
  })

  test('refuses a missing address, and shows how to give a command', () => {
    expect(parseArguments([])).toMatchObject({ kind: 'invalid', message: 'No address is given' })
    expect(parseArguments([URL_TEXT, 'ls'])).toMatchObject({ hint: 'sbx-stdio URL -- ls' })
    expect(parseArguments(['lsit'])).toMatchObject({ message: '"lsit" is neither a command nor an address' })
  })
})

function manyOf(count: number, value = ''): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`V${at}`, value]))
}

/** The longest possible hello message with this environment. */
function longestHello(env: Record<string, string>): string {
  const most = Number.MAX_SAFE_INTEGER
  return JSON.stringify({
    type: 'hello',
    version: 1e3,
    identity: 'f'.repeat(32),
    attempt: most,
    resuming: false,
    received: most,
    window: limits.MAX_WINDOW_BYTES,
    cols: limits.MAX_CELLS,
    rows: limits.MAX_CELLS,
    role: 'collaborator',
    name: '"'.repeat(limits.MAX_NAME_CHARS),
    env,
  })
}

/** Variables of the maximum total length. */
function fullEnv(): Record<string, string> {
  const env: Record<string, string> = manyOf(4, 'x'.repeat(limits.MAX_ENV_CHARS - 300))
  const rest = limits.MAX_ENV_TOTAL_CHARS - JSON.stringify({ ...env, REST: '' }).length
  return { ...env, REST: 'x'.repeat(rest) }
}

test('[E4] accepts as many and as long variables as a hello message carries', () => {
  const most = {
    many: manyOf(limits.MAX_ENV_ENTRIES),
    long: { A: 'x'.repeat(limits.MAX_ENV_CHARS) },
    named: { ['N'.repeat(limits.MAX_ENV_NAME_CHARS)]: '' },
    together: fullEnv(),
  }
  for (const [what, env] of Object.entries(most)) {
    validateEnv(env)
    expect([what, decodeClient(longestHello(env))?.kind]).toEqual([what, 'control'])
  }
})

test.each([
  ['too many', manyOf(limits.MAX_ENV_ENTRIES + 1), 'Too many variables: 257, at most 256 are allowed'],
  [
    'one too long',
    { SHORT: '', LONG: 'x'.repeat(limits.MAX_ENV_CHARS + 1) },
    'Variable "LONG" is too long: 32769 characters, at most 32768 are allowed',
  ],
  [
    'too long together',
    { ...fullEnv(), X: '' },
    'The variables are too long: 130055 characters in total, at most 130048 are allowed',
  ],
  // Each of them takes six characters in JSON.
  [
    'too long together in JSON',
    { A: '\x01'.repeat(22_000) },
    'The variables are too long: 132008 characters in total, at most 130048 are allowed',
  ],
])('refuses variables that are %s, with the limit and a hint', (_, env, message) => {
  const refuse = () => validateEnv(env)
  expect(refuse).toThrow(UsageError)
  expect(refuse).toThrow(message)
  try {
    refuse()
  } catch (error) {
    expect(error).toMatchObject({ hint: expect.stringMatching(/^[^\n]+$/) })
  }
})

import { describe, expect, test } from 'bun:test'
import { validateCommandSettings } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { CommandPolicy, expandTemplate } from '../src/commands/command-policy.ts'

const TEMPLATES = [
  {
    id: 'tail',
    title: 'Last lines of a log',
    argv: ['tail', '-n', '{count}', '--', 'logs/{name}.log'],
    params: {
      count: { pattern: '[0-9]{1,4}', default: '100' },
      name: { pattern: '[^/]*', maxLength: 64 },
    },
    env: { LC_ALL: 'C' },
  },
  {
    id: 'say',
    title: 'Say it',
    argv: ['printf', '%s', '{first}{second}'],
    params: { first: { pattern: '.*' }, second: { pattern: '.*', default: '', allowDash: true } },
    mode: 'pty',
    cwd: 'work',
  },
  { id: 'level', title: 'Pick one', argv: ['run', '{level}'], params: { level: { enum: ['low', 'high'] } } },
]

function policyOf(settings: object): CommandPolicy {
  const problems: string[] = []
  const policy = new CommandPolicy(validateCommandSettings({ templates: TEMPLATES, ...settings }, problems))
  expect(problems).toEqual([])
  return policy
}
const policy = policyOf({})

function refusalOf(run: () => unknown): SandwireError {
  try {
    run()
  } catch (error) {
    if (error instanceof SandwireError) return error
    throw error
  }
  throw new Error('It was not refused')
}
const expand = (query: string) => expandTemplate(new URLSearchParams(query), policy)

describe('a template', () => {
  test('puts each value at its placeholder and splits none', () => {
    expect(policy.fill('tail', [['name', 'a b  c;d $HOME']])).toEqual({
      template: 'tail',
      cmd: 'tail',
      args: ['-n', '100', '--', 'logs/a b  c;d $HOME.log'],
      mode: 'pipe',
      env: { LC_ALL: 'C' },
    })
  })

  test('expands neither placeholders nor replacement patterns in values', () => {
    const given = [
      ['first', '{second}$&$1$`'],
      ['second', '{first}'],
    ] as const
    expect(policy.fill('say', given).args).toEqual(['%s', '{second}$&$1$`{first}'])
  })

  test('accepts a leading dash only with allowDash', () => {
    expect(
      policy.fill('say', [
        ['first', 'a'],
        ['second', '--b'],
      ]).args,
    ).toEqual(['%s', 'a--b'])
  })

  test.each([
    ['a newline', 'a\nb'],
    ['a carriage return', 'a\rb'],
    ['NUL', 'a\0b'],
    ['an escape', 'a\u001b[2Jb'],
    ['a line separator', 'a\u2028b'],
    ['a bidi override', 'a\u202eb'],
    ['a lone surrogate', 'a\ud800b'],
    ['an option', '--help'],
    ['a short option', '-rf'],
    ['a dash', '-'],
    ['an en dash', '–help'],
    ['a Unicode hyphen', '‐help'],
    ['a minus sign', '−help'],
    ['a wide hyphen', '－help'],
    ['a small hyphen', '﹣help'],
    ['a folder', '../../etc/passwd'],
    ['a value above its maxLength', 'a'.repeat(65)],
    ['a very long value', 'a'.repeat(1_000_000)],
  ])('(threat T9) refuses %s and does not echo it', (_, value) => {
    const error = refusalOf(() => policy.fill('tail', [['name', value]]))
    expect(error.code).toBe('bad_template')
    expect(error.message).toContain('parameter "name"')
    expect(error.message.includes(value) && value.length > 1).toBe(false)
  })

  test('passes shell syntax on literally', () => {
    for (const value of ['$(id)', '`id`', '; id', '| id', '&& id', '"; id; "', "'$(id)'", '*'])
      expect(policy.fill('tail', [['name', value]]).args.at(-1)).toBe(`logs/${value}.log`)
  })

  test.each([
    [
      'a duplicate parameter',
      [
        ['name', 'a'],
        ['name', 'b'],
      ],
      'parameter "name" of the template: given twice',
    ],
    [
      'an unknown parameter',
      [
        ['name', 'a'],
        ['CANARY=', 'x'],
      ],
      'unknown',
    ],
    [
      '__proto__',
      [
        ['name', 'a'],
        ['__proto__', 'x'],
      ],
      'unknown',
    ],
    [
      'constructor',
      [
        ['name', 'a'],
        ['constructor', 'x'],
      ],
      'unknown',
    ],
    ['none', [], 'parameter "name" of the template: missing'],
    [
      'a value that replaces a default but does not match',
      [
        ['name', 'a'],
        ['count', '1e9'],
      ],
      'parameter "count" of the template: it does not match the pattern',
    ],
  ] as const)('refuses parameters: %s', (_, given, why) => {
    const error = refusalOf(() => policy.fill('tail', given))
    expect([error.code, error.message.includes(why)]).toEqual(['bad_template', true])
  })

  test('accepts exact values of an enum only', () => {
    expect(policy.fill('level', [['level', 'low']]).args).toEqual(['low'])
    for (const value of ['LOW', 'low ', '', 'toString'])
      expect(refusalOf(() => policy.fill('level', [['level', value]])).code).toBe('bad_template')
  })

  test('is refused if it does not exist, whatever its id', () => {
    for (const id of ['', 'nothing', '__proto__', 'constructor', 'TAIL'])
      expect(refusalOf(() => policy.fill(id, [])).code).toBe('bad_template')
  })
})

describe('expandTemplate', () => {
  test('returns the query of the equivalent command', () => {
    const expanded = expand('sandbox=dev&template=say&param=first%3Da%3Db%26c&cols=80')
    expect(expanded?.query.toString()).toBe(
      'sandbox=dev&cols=80&cmd=printf&arg=%25s&arg=a%3Db%26c&mode=pty&cwd=work',
    )
    expect(expanded?.filled.template).toBe('say')
  })

  test.each(['cmd=sh', 'arg=x', 'mode=pty', 'cwd=/', 'env=A%3D1', 'session=x', 'template=level'])(
    'refuses %s beside a template',
    (also) => {
      expect(refusalOf(() => expand(`template=tail&param=name%3Da&${also}`)).code).toBe('bad_request')
    },
  )

  test('refuses parameters without a template or without a value', () => {
    expect(refusalOf(() => expand('param=name%3Da')).code).toBe('bad_request')
    expect(refusalOf(() => expand('template=tail&param=name')).code).toBe('bad_request')
    expect(expand('cmd=sh')).toBeUndefined()
  })
})

describe('a command that is not a template', () => {
  const exec = { scopes: ['connect', 'exec'] } as const

  test('needs the scope exec and settings that allow it', () => {
    expect(() => policy.checkFree(exec, 'rm')).not.toThrow()
    expect(refusalOf(() => policy.checkFree({ scopes: ['connect', 'admin', 'operator'] }, 'ls')).code).toBe(
      'forbidden',
    )
    const none = policyOf({ free: 'nobody' })
    for (const cmd of ['ls', undefined])
      expect(refusalOf(() => none.checkFree(exec, cmd)).code).toBe('forbidden')
  })

  test('is blocked by its base name, whatever its path', () => {
    const strict = policyOf({ blocked: ['rm', 'bash'] })
    for (const cmd of ['rm', '/bin/rm', './rm', '/usr/bin/../bin/rm', 'rm/', '//rm//'])
      expect([cmd, refusalOf(() => strict.checkFree(exec, cmd)).code]).toEqual([cmd, 'command_blocked'])
    for (const cmd of ['rmdir', 'RM', 'ls', '/rm/ls']) expect(() => strict.checkFree(exec, cmd)).not.toThrow()
  })

  test('is blocked as the default shell when any shell is blocked', () => {
    expect(refusalOf(() => policyOf({ blocked: ['bash'] }).checkFree(exec, undefined)).code).toBe(
      'command_blocked',
    )
    expect(() => policyOf({ blocked: ['rm'] }).checkFree(exec, undefined)).not.toThrow()
  })
})

import { describe, expect, test } from 'bun:test'
import { type CommandSettings, validateCommandSettings } from './command-settings.ts'

const LOGS = {
  id: 'logs',
  title: 'Last lines of a log',
  argv: ['tail', '-n', '{count}', '--', 'logs/{name}.log'],
  params: {
    count: { pattern: '[0-9]{1,4}', default: '100' },
    name: { pattern: '[a-z][a-z0-9-]*', maxLength: 32 },
  },
}

function judge(raw: unknown): { settings: CommandSettings; problems: readonly string[] } {
  const problems: string[] = []
  return { settings: validateCommandSettings(raw, problems), problems }
}
const withTemplate = (changes: object) => judge({ templates: [{ ...LOGS, ...changes }] }).problems

describe('validateCommandSettings', () => {
  test('takes a template, and fills in what is not said', () => {
    const { settings, problems } = judge({ templates: [LOGS] })
    expect(problems).toEqual([])
    expect(settings).toMatchObject({ free: 'exec-scope', blocked: [] })
    expect(settings.templates[0]).toMatchObject({
      id: 'logs',
      mode: 'pipe',
      env: {},
      params: [
        { name: 'count', fallback: '100', allowDash: false, maxLength: 256 },
        { name: 'name', pattern: '[a-z][a-z0-9-]*', maxLength: 32 },
      ],
    })
  })

  test.each([
    ['no object', 'x', 'expected an object'],
    ['an unknown key', { rules: [] }, '"rules" is not a setting'],
    ['free for everybody', { free: 'everybody' }, '"free" must be exec-scope or nobody'],
    ['a blocked path', { blocked: ['/bin/rm'] }, '"blocked" must be'],
    ['a template twice', { templates: [LOGS, LOGS] }, '"logs" is there twice'],
    [
      'a blocked template',
      { blocked: ['tail'], templates: [LOGS] },
      '"logs" runs a command that "blocked" lists',
    ],
  ])('names what is wrong with %s', (_, raw, why) => {
    expect(judge(raw).problems.join('\n')).toContain(why)
  })

  test.each([
    ['an id with a space', { id: 'a b' }, '"id" must be'],
    ['no command', { argv: [] }, 'names no command'],
    [
      'a command of the caller’s',
      { argv: ['{name}', '{count}'] },
      'the command itself cannot be a parameter',
    ],
    ['a parameter that is not said', { argv: ['tail', '{count}', '{name}', '{x}'] }, 'holds {x}'],
    ['a parameter that is not used', { argv: ['tail', '{count}'] }, 'parameter "name" is not in "argv"'],
    ['NUL', { argv: ['tail\0', '{count}', '{name}'] }, '"argv" must be'],
    ['an environment of numbers', { env: { A: 1 } }, '"env" must be'],
    ['params that are a list', { params: [] }, '"params" must be an object'],
    ['a key of one’s own', { shell: true }, '"shell" is not a setting'],
  ])('names %s in a template', (_, changes, why) => {
    expect(withTemplate(changes).join('\n')).toContain(why)
  })

  test.each([
    ['nothing to fit', {}, 'either "pattern" or "enum"'],
    ['both', { pattern: 'a', enum: ['a'] }, 'either "pattern" or "enum"'],
    ['a broken pattern', { pattern: 'a)|(b' }, 'not a regular expression'],
    ['a back-reference', { pattern: '(a)\\1' }, 'back-reference'],
    ['a look-ahead', { pattern: '(?=a)a' }, 'look-around'],
    ['a repeated group', { pattern: '(?:a+)+' }, 'a group in it is repeated'],
    ['a repeated group in numbers', { pattern: '(?:a|a){50}' }, 'a group in it is repeated'],
    ['many options', { pattern: 'a?'.repeat(30) }, 'too long'],
    ['many alternatives', { pattern: '(?:a|a)'.repeat(30) }, 'too long'],
    ['many repetitions', { pattern: 'a*a*a*a*b', maxLength: 1024 }, 'too long'],
    ['a default that does not fit', { pattern: '[a-z]+', default: 'A' }, 'a value of its own'],
    ['a default like an option', { pattern: '.*', default: '--x' }, 'it begins with a dash'],
    ['an option to choose that is one', { enum: ['-v'] }, 'it begins with a dash'],
    ['a length of nothing', { pattern: 'a', maxLength: 0 }, '"maxLength" must be'],
  ])('names a parameter with %s', (_, name, why) => {
    const problems = withTemplate({ params: { ...LOGS.params, name } })
    expect(problems.join('\n')).toContain(why)
    expect(problems.join('\n')).toContain('parameter "name"')
  })

  test('lets a pattern be as free as its cost allows', () => {
    for (const pattern of [
      'v?[0-9]+\\.[0-9]+(?:-[a-z0-9.]+)?',
      '[^\\]()*+?|]+',
      '\\(\\)+',
      '[a-z0-9_-]{1,39}/[a-z]+',
    ])
      expect(withTemplate({ params: { ...LOGS.params, name: { pattern, maxLength: 64 } } })).toEqual([])
  })

  test.each([
    [['sh', '-c', 'cat {name} {count}']],
    [['/bin/bash', '-lc', 'cat {name} {count}']],
    [['bash', '-o', 'pipefail', '-c', '{name}', '{count}']],
    [['bash', '-c', '-o', 'pipefail', 'cat {name}', '{count}']],
    [['bash', '-c', '-e', '--', 'cat {name}', '{count}']],
    [['env', 'A=1', 'zsh', '-c', '{name}', '{count}']],
    [['busybox', 'sh', '-c', '{name}', '{count}']],
    [['fish', '--command={name}', '{count}']],
    [['bash', '-{name}', '{count}']],
    [['python3.12', '-c', 'print({name})', '{count}']],
    [['node', '--eval', '{name}', '{count}']],
    [['env', '-S', 'echo {name}', '{count}']],
    [['su', 'user', '-c', '{name}', '{count}']],
  ])('(threat T9) refuses a parameter in code: %j', (argv) => {
    expect(withTemplate({ argv }).join('\n')).toContain('takes something to run')
  })

  test('lets a script read its parameters as arguments', () => {
    for (const argv of [
      ['bash', '-c', 'tail -n "$2" -- "$1"', 'bash', '{name}', '{count}'],
      ['bash', 'run.sh', '{name}', '{count}'],
      ['grep', '-c', '{name}', '{count}'],
    ])
      expect(withTemplate({ argv })).toEqual([])
  })
})

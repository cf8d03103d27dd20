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

function validate(raw: unknown): { settings: CommandSettings; problems: readonly string[] } {
  const problems: string[] = []
  return { settings: validateCommandSettings(raw, problems), problems }
}
const withTemplate = (changes: object) => validate({ templates: [{ ...LOGS, ...changes }] }).problems

describe('validateCommandSettings', () => {
  test('accepts a template and fills in defaults', () => {
    const { settings, problems } = validate({ templates: [LOGS] })
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
    ['a template twice', { templates: [LOGS, LOGS] }, '"logs" is defined twice'],
    [
      'a blocked template',
      { blocked: ['tail'], templates: [LOGS] },
      '"logs" runs a command that "blocked" lists',
    ],
  ])('reports %s', (_, raw, why) => {
    expect(validate(raw).problems.join('\n')).toContain(why)
  })

  test.each([
    ['an id with a space', { id: 'a b' }, '"id" must be'],
    ['no command', { argv: [] }, 'names no command'],
    ['a parameter as the program', { argv: ['{name}', '{count}'] }, 'the program cannot be a parameter'],
    ['an undefined parameter', { argv: ['tail', '{count}', '{name}', '{x}'] }, 'contains {x}'],
    ['an unused parameter', { argv: ['tail', '{count}'] }, 'parameter "name" is not in "argv"'],
    ['NUL', { argv: ['tail\0', '{count}', '{name}'] }, '"argv" must be'],
    ['an environment of numbers', { env: { A: 1 } }, '"env" must be'],
    ['params that are a list', { params: [] }, '"params" must be an object'],
    ['an unknown key', { shell: true }, '"shell" is not a setting'],
  ])('reports %s in a template', (_, changes, why) => {
    expect(withTemplate(changes).join('\n')).toContain(why)
  })

  test.each([
    ['neither pattern nor enum', {}, 'either "pattern" or "enum"'],
    ['both', { pattern: 'a', enum: ['a'] }, 'either "pattern" or "enum"'],
    ['a broken pattern', { pattern: 'a)|(b' }, 'not a regular expression'],
    ['a back-reference', { pattern: '(a)\\1' }, 'back-reference'],
    ['a look-ahead', { pattern: '(?=a)a' }, 'look-around'],
    ['a repeated group', { pattern: '(?:a+)+' }, 'it repeats a group'],
    ['a repeated group in numbers', { pattern: '(?:a|a){50}' }, 'it repeats a group'],
    ['many options', { pattern: 'a?'.repeat(30) }, 'too long'],
    ['many alternatives', { pattern: '(?:a|a)'.repeat(30) }, 'too long'],
    ['many repetitions', { pattern: 'a*a*a*a*b', maxLength: 1024 }, 'too long'],
    ['a default that does not fit', { pattern: '[a-z]+', default: 'A' }, 'one of its own values'],
    ['a default like an option', { pattern: '.*', default: '--x' }, 'it begins with a dash'],
    ['an enum value with a dash', { enum: ['-v'] }, 'it begins with a dash'],
    ['a length of zero', { pattern: 'a', maxLength: 0 }, '"maxLength" must be'],
  ])('reports a parameter with %s', (_, name, why) => {
    const problems = withTemplate({ params: { ...LOGS.params, name } })
    expect(problems.join('\n')).toContain(why)
    expect(problems.join('\n')).toContain('parameter "name"')
  })

  test('accepts patterns of bounded cost', () => {
    for (const pattern of [
      'v?[0-9]+\\.[0-9]+(?:-[a-z0-9.]+)?',
      '[^\\]()*+?|]+',
      '\\(\\)+',
      '[a-z0-9_-]{1,39}/[a-z]+',
    ])
      expect(withTemplate({ params: { ...LOGS.params, name: { pattern, maxLength: 64 } } })).toEqual([])
  })

  test('(threat T9) refuses a parameter that could be run', () => {
    expect(withTemplate({ argv: ['sh', '-c', 'cat {name} {count}'] }).join('\n')).toContain('could be code')
    expect(withTemplate({ argv: ['bash', '{name}', '{count}'] }).join('\n')).toContain(
      'could run a parameter',
    )
  })

  test('accepts parameters that a script reads as arguments', () => {
    for (const argv of [
      ['bash', '-c', 'tail -n "$2" -- "$1"', 'bash', '{name}', '{count}'],
      ['bash', 'run.sh', '{name}', '{count}'],
    ])
      expect(withTemplate({ argv })).toEqual([])
  })
})

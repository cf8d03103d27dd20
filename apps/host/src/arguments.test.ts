import { describe, expect, test } from 'bun:test'
import { parseArguments } from './arguments.ts'

const DEFAULTS = { isQuiet: false, isNewToken: false, keepsSandboxes: false, acceptsMissing: false }

describe('parseArguments', () => {
  test('parses up without options', () => {
    expect(parseArguments(['up'])).toEqual({ kind: 'up', flags: DEFAULTS })
  })

  test('reads every option of up', () => {
    const argv = [
      'up',
      '--port',
      '0',
      '--data=d',
      '--workspace',
      'w',
      '--quiet',
      '--new-token',
      '--keep-sandboxes',
      '--accept-missing',
    ]
    expect(parseArguments(argv)).toEqual({
      kind: 'up',
      flags: {
        port: '0',
        data: 'd',
        workspace: 'w',
        isQuiet: true,
        isNewToken: true,
        keepsSandboxes: true,
        acceptsMissing: true,
      },
    })
  })

  test.each(['doctor', 'signin'] as const)('reads the data folder of %s', (command) => {
    expect(parseArguments([command, '--data', 'd'])).toEqual({ kind: command, flags: { data: 'd' } })
  })

  test.each([[['--help']], [['-h']], [['help']], [['up', '--help']], [['doctor', '-h']]])(
    '%j asks for help',
    (argv) => {
      expect(parseArguments(argv)).toEqual({ kind: 'help' })
    },
  )

  test.each([[['version']], [['--version']]])('%j requests the version', (argv) => {
    expect(parseArguments(argv)).toEqual({ kind: 'version' })
  })

  test.each([
    [[], 'no command'],
    [['serve'], 'unknown command "serve"'],
    [['up', '--prot', '1'], "Unknown option '--prot'"],
    [['up', '--port'], "Option '--port <value>' argument missing"],
    [['up', '--data', ''], 'Option --data is empty'],
    [['doctor', '--workspace='], 'Option --workspace is empty'],
    [['up', 'now'], "Unexpected argument 'now'. This command does not take positional arguments"],
    [['doctor', '--port', '1'], "Unknown option '--port'"],
    [['version', 'x'], 'version takes no arguments'],
  ])('%j is refused in one line', (argv, message) => {
    expect(parseArguments(argv)).toEqual({ kind: 'wrong', message })
  })
})

import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { conversationOf, openTui, seedClaude } from './agent-tui.ts'

let home: string
let file: string

beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), 'agent-tui-'))
  file = path.join(home, '.claude.json')
})
afterEach(() => rmSync(home, { recursive: true }))

test('the settings of Claude Code are made, then extended', () => {
  seedClaude(home, '/w')
  seedClaude(home, '/x')
  expect(Object.keys(JSON.parse(readFileSync(file, 'utf8')).projects)).toEqual(['/w', '/x'])
  expect(readdirSync(home)).toEqual(['.claude.json'])
})

test('a pipe in place of the settings is not waited for, and a link not followed', () => {
  Bun.spawnSync(['mkfifo', file])
  seedClaude(home, '/w')
  rmSync(file)
  const target = path.join(home, 'target')
  writeFileSync(target, '{}')
  symlinkSync(target, file)
  seedClaude(home, '/w')
  expect(readFileSync(target, 'utf8')).toBe('{}')
})

test.each([
  [['--resume', 'a'], 'a'],
  [['--model', 'x', '-r', 'a'], 'a'],
  [['--resume=a'], 'a'],
  [['-ra'], 'a'],
  [['--debug', '-sses_1'], 'ses_1'],
  [['--session-id', 'a'], 'a'],
  [['-r'], undefined],
  [['-r', '--debug'], undefined],
  [['--session', 'a'], 'a'],
  [['--resume'], undefined],
  [['--resume', '--debug'], undefined],
  [['resume', 'a'], undefined],
])('the arguments %j name the conversation %j', (args, conversation) =>
  expect(conversationOf(args)).toBe(conversation),
)

test('temporary files with the token are removed when the session ends', () => {
  const options = { asUser: <T>(action: () => T): T => action(), temporaryFolder: home, home, cwd: '/w' }
  const tui = { driver: 'claude', program: '/c', env: { ANTHROPIC_AUTH_TOKEN: 'token' } } as const
  const { argv, close } = openTui(tui, [], options)
  const settings = argv.find((arg) => arg.startsWith('--settings='))?.slice('--settings='.length) ?? ''
  expect(JSON.parse(readFileSync(settings, 'utf8')).env).toMatchObject(tui.env)
  close()
  expect(existsSync(settings)).toBe(false)
  expect(readdirSync(home)).toEqual(['.claude.json'])
})

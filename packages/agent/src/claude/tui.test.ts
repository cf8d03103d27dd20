import { expect, test } from 'bun:test'
import { claudeTui, seedClaudeSettings } from './tui.ts'

test('asks before tools unless an argument chooses a permission mode', () => {
  const options = { access: { ANTHROPIC_AUTH_TOKEN: 'token' }, scratch: '/s', settings: '/s/settings' }
  const argvOf = (...args: string[]) => claudeTui('/c', args, options).argv
  const sources = ['--setting-sources=user', '--add-dir=.']
  const settings = '--settings=/s/settings'
  expect(argvOf('--resume', 'x')).toEqual([
    '/c',
    ...sources,
    '--permission-mode=default',
    settings,
    '--resume',
    'x',
  ])
  for (const mode of ['--permission-mode', '--permission-mode=plan', '--dangerously-skip-permissions'])
    expect(argvOf(mode, '--settings=own')).toEqual(['/c', ...sources, mode, '--settings=own'])
  const project = '--setting-sources=user,project'
  expect(argvOf(project)).toEqual(['/c', '--permission-mode=default', settings, project])
})

test('settings are added to what the program has stored', () => {
  const seeded = { hasCompletedOnboarding: true, projects: { '/w': { hasTrustDialogAccepted: true } } }
  expect(JSON.parse(seedClaudeSettings(undefined, '/w') ?? '')).toEqual(seeded)
  const present = { userID: 'u', projects: { '/w': { lastCost: 1 }, '/x': {} } }
  expect(JSON.parse(seedClaudeSettings(JSON.stringify(present), '/w') ?? '')).toEqual({
    ...seeded,
    userID: 'u',
    projects: { '/w': { lastCost: 1, hasTrustDialogAccepted: true }, '/x': {} },
  })
  expect(seedClaudeSettings(JSON.stringify(seeded), '/w')).toBeUndefined()
})

test.each(['', '{', '[]', '{"projects":1}', '{"projects":{"/w":[]}}'])('%j is left as it is', (text) => {
  expect(seedClaudeSettings(text, '/w')).toBeUndefined()
})

import { expect, test } from 'bun:test'
import { type ErrorCode, ERRORS, SandwireError } from '@sandwire/protocol'
import { COMMAND_NAMES } from '../commands/names.ts'
import { COMMANDS } from '../commands/run-command.ts'
import { SignedOutError } from './errors.ts'
import { type Action, hintFor, messageFor } from './hints.ts'

const CONTEXT = {
  action: 'list' as const,
  url: 'http://h',
  credential: 'given' as const,
  program: 'sbx-stdio',
  reattach: undefined,
}

test('hintFor has one line for every error', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) expect(hintFor(code, CONTEXT)).toMatch(/^[^\n]{5,}$/)
})

test('hintFor depends on the context', () => {
  expect(hintFor('unauthorized', { ...CONTEXT, credential: 'none' })).toContain('sbx-stdio login http://h')
  expect(hintFor('unauthorized', CONTEXT)).toContain('does not accept this token')
  expect(hintFor('link_lost', CONTEXT)).toContain('http://h')
  expect(hintFor('frame_too_large', { ...CONTEXT, action: 'start a command' })).toContain('-- bash -s < FILE')
  expect(hintFor('frame_too_large', CONTEXT)).not.toContain('FILE')
  for (const action of ['join a session', 'watch a session'] as const)
    expect(hintFor('bad_request', { ...CONTEXT, action, urlOption: ' --url http://h' })).toBe(
      'list your sessions: sbx-stdio sessions --url http://h',
    )
  expect(hintFor('link_lost', { ...CONTEXT, isLocal: true })).toContain('npm start')
  expect(hintFor('link_lost', { ...CONTEXT, reattach: 'sbx-stdio http://h --session s' })).toBe(
    'sbx-stdio http://h --session s',
  )
})

test('hintFor gives a command that can be pasted', () => {
  const context = { ...CONTEXT, sandbox: 'dev', urlOption: ' --url http://h' }
  expect(hintFor('sandbox_stopped', context)).toBe('start it: sbx-stdio start dev --url http://h')
  expect(hintFor('needs_discard', { ...context, urlOption: '' })).toEndWith('sbx-stdio stop dev --discard')
  expect(hintFor('sandbox_not_found', CONTEXT)).toEndWith('sbx-stdio list')
  expect(hintFor('sandbox_failed', CONTEXT)).toEndWith('sbx-stdio logs NAME')
  const npx = { ...context, program: 'npx sbx-stdio' }
  expect(hintFor('sandbox_stopped', npx)).toBe('start it: npx sbx-stdio start dev --url http://h')
  expect(hintFor('bad_request', npx)).toBe('npx sbx-stdio --help')
  expect(hintFor('provider_unavailable', CONTEXT)).toContain('npm start')
})

const forbidden = (action: Action): string =>
  hintFor('forbidden', {
    ...CONTEXT,
    action,
    program: 'npx sbx-stdio',
    sandbox: 'dev',
    urlOption: ' --url http://h',
  })

test('a forbidden command gets no option that it does not have', () => {
  for (const name of COMMAND_NAMES) {
    const options = [...forbidden(name).matchAll(/--(?!url\b)([a-z-]+)/g)].map(([, option = '']) => option)
    for (const option of options) expect(COMMANDS[name].options).toHaveProperty(option)
  }
})

test('a forbidden command is not suggested again', () => {
  for (const name of COMMAND_NAMES) expect(forbidden(name)).not.toMatch(new RegExp(`sbx-stdio ${name}\\b`))
})

test('a user who may not start a command is pointed to templates and sessions', () => {
  expect(forbidden('start a command')).toContain('npx sbx-stdio templates --url http://h')
  expect(forbidden('start a command')).toContain('npx sbx-stdio sessions dev --url http://h')
  expect(forbidden('start a command')).toContain('--template')
  expect(hintFor('forbidden', { ...CONTEXT, action: 'start a command' })).toContain('sbx-stdio sessions,')
  expect(forbidden('start a template')).not.toContain('template')
})

test('a user who may not join can watch', () => {
  expect(forbidden('join a session')).toContain('--role viewer')
  expect(forbidden('watch a session')).not.toContain('--role')
  const role = (action: Action): string => hintFor('role_refused', { ...CONTEXT, action })
  expect(role('watch a session')).toContain('omit --role viewer')
  expect(role('join a session')).not.toContain('--role')
})

test('messageFor reports the end of a sign-in once', () => {
  const refused = new SandwireError('unauthorized', 'not accepted')
  expect(messageFor(refused, 'signIn')).toBe(
    'Signed out: the server no longer accepts this sign-in: not accepted',
  )
  expect(messageFor(refused, 'given')).toBe('not accepted')
  expect(messageFor(new SignedOutError('the guest access has ended'), 'guest')).toBe(
    'Signed out: the guest access has ended',
  )
})

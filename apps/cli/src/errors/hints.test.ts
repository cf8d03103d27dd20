import { expect, test } from 'bun:test'
import { ERRORS, type ErrorCode } from '@sandwire/protocol'
import { hintFor } from './hints.ts'

const CONTEXT = {
  doing: 'list' as const,
  url: 'http://h',
  credential: 'given' as const,
  program: 'sbx-stdio',
  comeBack: undefined,
}

test('hintFor has one line for every error', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) expect(hintFor(code, CONTEXT)).toMatch(/^[^\n]{5,}$/)
})

test('hintFor depends on what is known', () => {
  expect(hintFor('unauthorized', { ...CONTEXT, credential: 'none' })).toContain('sbx-stdio login http://h')
  expect(hintFor('unauthorized', CONTEXT)).toContain('not accepted')
  expect(hintFor('link_lost', CONTEXT)).toContain('http://h')
  expect(hintFor('frame_too_large', { ...CONTEXT, doing: 'start something' })).toContain('-- bash -s < FILE')
  expect(hintFor('frame_too_large', CONTEXT)).not.toContain('FILE')
  for (const doing of ['join a session', 'watch a session'] as const)
    expect(hintFor('bad_request', { ...CONTEXT, doing, urlOption: ' --url http://h' })).toBe(
      'see which there are: sbx-stdio sessions --url http://h',
    )
  expect(hintFor('link_lost', { ...CONTEXT, isOwn: true })).toContain('npm start')
  expect(hintFor('link_lost', { ...CONTEXT, comeBack: 'sbx-stdio http://h --session s' })).toBe(
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

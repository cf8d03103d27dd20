import { expect, test } from 'bun:test'
import { shellRequest } from './shell-request.ts'

const NIGHT_SECONDS = 43_200

test('every shell that is started waits a night for a page that was closed', () => {
  expect(shellRequest({ kind: 'terminal', sandbox: 'dev' })).toEqual({
    sandbox: 'dev',
    keepSeconds: NIGHT_SECONDS,
  })
  const clone = { cmd: 'sh', args: ['-c', 'git clone'] }
  expect(shellRequest({ kind: 'terminal', sandbox: 'dev', cwd: 'src', drove: true }, clone)).toEqual({
    sandbox: 'dev',
    cwd: 'src',
    keepSeconds: NIGHT_SECONDS,
    ...clone,
  })
})

test('a session that is there is joined, with nothing that is for a new one', () => {
  const place = { kind: 'terminal', sandbox: 'dev', session: 's', cwd: 'src' } as const
  expect(shellRequest(place)).toEqual({ sandbox: 'dev', session: 's' })
})

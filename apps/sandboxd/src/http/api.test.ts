import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { Api, type ApiDependencies } from './api.ts'
import { BEARER } from '../caller.ts'

test('(threat T11) a driver that may not run commands changes no file', async () => {
  const deps = {} as ApiDependencies
  const call = {
    request: new Request('http://localhost/workspace/file?path=f', { method: 'PUT', body: 'x' }),
    url: new URL('http://localhost/workspace/file?path=f'),
    caller: { ...BEARER, standing: 'driver', exec: false } as const,
    requestId: 'r',
  }
  expect(await rejectionOf(new Api(deps).handle(call))).toMatchObject({ code: 'forbidden' })
})

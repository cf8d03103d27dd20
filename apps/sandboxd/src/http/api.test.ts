import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { Api, type ApiDependencies } from './api.ts'
import { BEARER, type Caller } from '../caller.ts'

test('(threat T11) a driver that may not run commands changes no file', async () => {
  const deps = {} as ApiDependencies
  const call = {
    request: new Request('http://localhost/workspace/file?path=f', { method: 'PUT', body: 'x' }),
    url: new URL('http://localhost/workspace/file?path=f'),
    caller: { ...BEARER, authority: 'driver', exec: false } as const,
    requestId: 'r',
  }
  expect(await rejectionOf(new Api(deps).handle(call))).toMatchObject({ code: 'forbidden' })
})

test('[X13] stores the reason that control gives for a stop, and refuses one that is unknown', async () => {
  const reasons: string[] = []
  const api = new Api({
    setStopReason: (reason: string) => reasons.push(reason),
  } as unknown as ApiDependencies)
  const url = new URL('http://localhost/stop-reason')
  const put = (body: object, caller: Caller): Promise<Response> =>
    api.handle({
      request: new Request(url, { method: 'PUT', body: JSON.stringify(body) }),
      url,
      caller,
      requestId: 'r',
    })
  const control = { ...BEARER, authority: 'control' } as const
  expect((await put({ reason: 'idle' }, control)).status).toBe(200)
  expect(await rejectionOf(put({ reason: 'bored' }, control))).toMatchObject({ code: 'bad_request' })
  expect(await rejectionOf(put({ reason: 'idle' }, { ...control, authority: 'driver' }))).toMatchObject({
    code: 'forbidden',
  })
  expect(reasons).toEqual(['idle'])
})

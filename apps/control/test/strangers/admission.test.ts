import { describe, expect, test } from 'bun:test'
import { OpenAPIHono } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import { Callers } from '../../src/http/callers.ts'
import { respondError } from '../../src/http/respond.ts'
import { admitRequests } from '../../src/routes/admission.ts'
import type { AppEnv } from '../../src/routes/context.ts'
import { addOpenApiRoute } from '../../src/routes/openapi.ts'

/** An app with one route that answers when `answer` is called, and counts what runs. */
function open() {
  const callers = new Callers()
  const delays: number[] = []
  const app = new OpenAPIHono<AppEnv>()
  let running = 0
  const answers: (() => void)[] = []
  app.use(
    admitRequests({
      callers,
      nowMs: () => 0,
      sleep: async (ms) => void delays.push(ms),
    }),
  )
  app.get('/wait', async (context) => {
    running += 1
    const { promise, resolve } = Promise.withResolvers<void>()
    answers.push(resolve)
    await promise
    return context.text('done')
  })
  app.get('/refused', () => {
    throw new SandwireError('rate_limited', 'Too many requests')
  })
  app.onError((caught) => respondError(SandwireError.from(caught), 'r'))
  const send = async (path: string, token: string): Promise<Response> =>
    app.request(path, { headers: { authorization: `Bearer ${token}` } })
  const signIn = (token: string, name: string): Promise<void> =>
    callers.add(new Request('http://h/', { headers: { authorization: `Bearer ${token}` } }), name)
  return { app, delays, send, signIn, answers, running: () => running }
}

/** Lets everything run that waits for no timer. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('admission', () => {
  test('an account with many requests leaves room for another', async () => {
    const { send, signIn, answers, running } = open()
    await signIn('eve', 'eve')
    await signIn('ada', 'ada')
    const flood = Array.from({ length: 50 }, () => send('/wait', 'eve'))
    await settle()
    const before = running()
    expect(before).toBeLessThan(10)
    const small = send('/wait', 'ada')
    await settle()
    expect(running()).toBe(before + 1)
    answers.at(-1)?.()
    expect((await small).status).toBe(200)
    for (let done = 0; done < flood.length + 1; done += 1) {
      answers[done]?.()
      await settle()
    }
    expect((await Promise.all(flood)).map(({ status }) => status)).toEqual(flood.map(() => 200))
  })

  test('refuses requests of a caller of which hundreds wait', async () => {
    const { send, signIn, answers } = open()
    await signIn('eve', 'eve')
    const flood = Array.from({ length: 400 }, () => send('/wait', 'eve'))
    const refused = await flood.at(-1)
    expect(refused?.status).toBe(429)
    expect(refused?.headers.get('retry-after')).toBe('1')
    for (let done = 0; done < flood.length; done += 1) {
      answers[done]?.()
      await settle()
    }
    const statuses = (await Promise.all(flood)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
  })

  test('delays the refusals of a client that gets many, and of no other', async () => {
    const { send, signIn, delays } = open()
    await signIn('eve', 'eve')
    await signIn('ada', 'ada')
    for (let count = 0; count < 20; count += 1) await send('/refused', 'eve')
    expect(delays).toEqual([])
    await send('/refused', 'eve')
    expect(delays).toEqual([1_000])
    await send('/refused', 'ada')
    expect(delays).toHaveLength(1)
  })
})

test('the OpenAPI document is built once', async () => {
  const app = new OpenAPIHono<AppEnv>()
  addOpenApiRoute(app, () => (_, next) => next())
  let built = 0
  const build = app.getOpenAPI31Document.bind(app)
  app.getOpenAPI31Document = (...options) => {
    built += 1
    return build(...options)
  }
  const first = await (await app.request('/api/openapi.json')).text()
  expect(await (await app.request('/api/openapi.json')).text()).toBe(first)
  expect(built).toBe(1)
})

import { describe, expect, test } from 'bun:test'
import { Hono } from 'hono'
import { SandwireError } from '@sandwire/protocol'
import { holdBody } from '../src/http/request-body.ts'

/** Responds with the body that a handler gets, or with the error. */
function open(maxBytes: number, ms?: number): Hono {
  const app = new Hono()
  app.use(holdBody(maxBytes, ms))
  app.all('/', async (context) => context.text(await context.req.text()))
  app.onError((error, context) => context.text(SandwireError.from(error).code, 400))
  return app
}

function send(app: Hono, body: BodyInit): Promise<string> {
  const request = new Request('http://localhost/', { method: 'POST', body })
  return Promise.resolve(app.fetch(request)).then((response) => response.text())
}

function stream(...chunks: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk))
      controller.close()
    },
  })
}

describe('holdBody', () => {
  test('passes on a body within the limit, with and without a length', async () => {
    const app = open(5)
    expect(await send(app, 'hello')).toBe('hello')
    expect(await send(app, stream('he', 'llo'))).toBe('hello')
    expect(await send(app, '')).toBe('')
  })

  test('refuses a larger body', async () => {
    const app = open(5)
    expect(await send(app, 'hello!')).toBe('frame_too_large')
    expect(await send(app, stream('hello', '!'))).toBe('frame_too_large')
  })

  test('refuses a body that breaks off as malformed, not as too large', async () => {
    const broken = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('he'))
      },
      pull(controller) {
        controller.error(new Error('Network connection lost'))
      },
    })
    expect(await send(open(5), broken)).toBe('bad_request')
  })

  test('times out and cancels a body that does not arrive', async () => {
    const canceled = Promise.withResolvers<void>()
    const endless = new ReadableStream<Uint8Array>({
      pull: () => new Promise(() => undefined),
      cancel: () => canceled.resolve(),
    })
    expect(await send(open(5, 1), endless)).toBe('silent')
    await canceled.promise
  })
})

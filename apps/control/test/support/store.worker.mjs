import { SandwireError } from '@sandwire/protocol'
import { R2Store } from '../../src/versions/r2-store.ts'
import { S3Store } from '../../src/versions/s3-store.ts'

function openStore({ FILES, S3, SETTINGS }) {
  if (FILES !== undefined) return new R2Store(FILES)
  return new S3Store(SETTINGS, SETTINGS, {
    fetch: (request) => S3.fetch(request),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    random: () => 0,
    ...(SETTINGS.timeoutMs === undefined ? {} : { timeoutMs: () => SETTINGS.timeoutMs }),
  })
}

async function perform(store, request) {
  const { searchParams } = new URL(request.url)
  const text = (name) => searchParams.get(name) ?? ''
  switch (text('do')) {
    case 'put': {
      const facts = { sizeBytes: Number(text('size')), sha256: text('sha256') }
      const body = text('as') === 'stream' ? request.body : await request.bytes()
      await store.put(text('key'), body ?? new Uint8Array(), facts)
      return new Response('stored')
    }
    case 'get': {
      const range = { start: Number(text('start')), end: Number(text('end')) }
      const body = await store.get(text('key'), searchParams.has('end') ? range : undefined)
      return new Response(body ?? null, { status: body === undefined ? 204 : 200 })
    }
    case 'delete':
      await store.delete(text('key'))
      return new Response('deleted')
    default:
      return Response.json(await store.list(text('prefix'), searchParams.get('after') ?? undefined))
  }
}

/** A store of control in workerd, behind HTTP, for the contract of stores. */
// oxlint-disable-next-line import/no-default-export -- workerd requires one
export default {
  async fetch(request, env) {
    try {
      return await perform(openStore(env), request)
    } catch (error) {
      const { code, message } = SandwireError.from(error)
      return Response.json({ code, message }, { status: 500 })
    }
  },
}

import { lstatSync, rmSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { respondError } from '../api/respond.ts'
import { toHostError } from '../data/folder-problem.ts'
import { describeCause, type Log } from '../log.ts'
import type { FolderStore } from './folder-store.ts'

/** A segment of 8 MiB with the manifest of a million files. */
const MAX_OBJECT_BYTES = 144 * 1024 * 1024
/** Reading and writing on a slow disk. */
const IDLE_TIMEOUT_S = 120

export interface StoreServerOptions {
  /** Must be in a folder that only this user can enter. */
  readonly socket: string
  readonly store: FolderStore
  readonly folder: string
  /** Throws when there is no space for an object of this size. */
  readonly admit: (sizeBytes: number) => void
  readonly log: Log
}

/** Serves the folder of saved versions to control, on a unix socket: one object per key. */
export function serveStore(options: StoreServerOptions): { close(): Promise<void> } {
  const { socket, folder, log } = options
  if (lstatSync(socket, { throwIfNoEntry: false })?.isSocket() === true) rmSync(socket)
  const umask = process.umask(0o177)
  try {
    const server = Bun.serve({
      unix: socket,
      maxRequestBodySize: MAX_OBJECT_BYTES,
      fetch: async (request, self) => {
        self.timeout(request, IDLE_TIMEOUT_S)
        try {
          return await answerStore(request, options)
        } catch (error) {
          const problem = toHostError(error, folder)
          const { code, message, cause } = problem
          log.warn('store_request', {
            code,
            message,
            ...(cause !== undefined && { cause: describeCause(cause) }),
          })
          return respondError(problem, '')
        }
      },
      error: () => respondError(new SandwireError('internal', 'Internal error'), ''),
    })
    return {
      close: async () => {
        await server.stop(true)
        rmSync(socket, { force: true })
      },
    }
  } finally {
    process.umask(umask)
  }
}

/** Handles one request; the path is the key. */
async function answerStore(
  request: Request,
  { store, admit }: Pick<StoreServerOptions, 'store' | 'admit'>,
): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url)
  const key = pathname.slice(1)
  switch (request.method) {
    case 'PUT': {
      const sizeBytes = Number(request.headers.get('sandwire-size'))
      const sha256 = request.headers.get('sandwire-sha256') ?? ''
      admit(sizeBytes)
      await store.put(key, request.body ?? emptyBody(), { sizeBytes, sha256 })
      return new Response(null, { status: 204 })
    }
    case 'GET': {
      if (key === '')
        return Response.json({
          keys: await store.list(searchParams.get('prefix') ?? '', searchParams.get('after') ?? ''),
        })
      const file = await store.get(key)
      if (file === undefined) throw new SandwireError('not_found', 'No such object')
      return respondRange(file, request.headers.get('range'))
    }
    case 'DELETE':
      await store.delete(key)
      return new Response(null, { status: 204 })
  }
  throw new SandwireError('method_not_allowed', 'Cannot use this method')
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {
  // A request without a body has no bytes.
}

function respondRange(file: Bun.BunFile, range: string | null): Response {
  const match = /^bytes=([0-9]{1,15})-([0-9]{1,15})$/.exec(range ?? '')
  if (match === null) return new Response(file)
  const [start, end] = [Number(match[1]), Number(match[2]) + 1]
  if (start >= end || end > file.size)
    throw new SandwireError('range_refused', 'Cannot read the object: the range is outside it')
  return new Response(file.slice(start, end), { status: 206 })
}

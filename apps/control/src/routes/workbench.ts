import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import { acceptedCodings, type Coding, hasTag, nameInCoding, tagOf } from '../http/content-coding.ts'
import { frame } from '../pages/frame.ts'
import { WORKBENCH_TEXTS } from '../pages/texts.ts'
import type { App } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { HTML, pageHeaders, respondPage } from '../http/respond.ts'

/** Serves the files of the workbench by path. */
export interface Assets {
  fetch(url: string): Promise<Response>
}

/** Content types by file suffix; other files are not served. */
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
}

/** File names contain a content hash, so a file never changes. */
const IMMUTABLE = 'public, max-age=31536000, immutable'

/**
 * Allows scripts and connections of this server only. Allows no `blob:` URLs: they have our origin, and browsers do not apply
 * this policy when one is opened alone. Allows inline styles: xterm.js colors cells with style attributes, and the
 * editor generates rules.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const NO_WORKBENCH_PAGE = frame(
  'Sandwire',
  `<h1>${WORKBENCH_TEXTS.title}</h1><p>${WORKBENCH_TEXTS.missing}</p>`,
)

export interface WorkbenchSource {
  /** Absent: the workbench is not served. */
  readonly assets: Assets | undefined
  /** Content codings for which compressed copies may exist. */
  readonly codings: readonly Coding[]
}

/** A file or its compressed copy. */
interface FoundFile {
  readonly body: ReadableStream | null
  readonly length: string | null
  readonly coding: Coding | undefined
}

/** The first existing copy in an accepted coding, or the file itself. */
async function fetchFile(assets: Assets, file: string, accepted: readonly Coding[]): Promise<FoundFile> {
  for (const coding of [...accepted, undefined]) {
    const name = coding === undefined ? file : nameInCoding(file, coding)
    const { status, body, headers } = await assets.fetch(`http://assets/${name}`)
    if (status === 200) return { body, length: headers.get('content-length'), coding }
    await body?.cancel()
  }
  throw new SandwireError('not_found', 'No such file')
}

/** Responds with the stored bytes. The runtime sets the length of a stream; without a body it is set here. */
async function respondFile(
  { body, length, coding }: FoundFile,
  headers: Readonly<Record<string, string>>,
  isHead: boolean,
): Promise<Response> {
  if (isHead) await body?.cancel()
  return new Response(isHead ? null : body, {
    headers: {
      ...headers,
      vary: 'accept-encoding',
      ...(isHead && length !== null && { 'content-length': length }),
      ...(coding !== undefined && { 'content-encoding': coding }),
    },
    encodeBody: coding === undefined ? 'automatic' : 'manual',
  })
}

const fileParams = z.object({ file: z.string().regex(/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.[a-z0-9]+$/) })

/** Headers of every asset. */
const FILE_HEADERS = {
  'cache-control': IMMUTABLE,
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  // An SVG that is opened directly is a document.
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

/** The workbench: a static page and its assets, which are public. */
export function addWorkbenchRoutes(app: App, guardOf: GuardOf, { assets, codings }: WorkbenchSource): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/',
      hide: true,
      responses: { 200: { description: 'The page' } },
    }),
    async ({ req }) => {
      if (assets === undefined) return respondPage(NO_WORKBENCH_PAGE)
      const accepted = acceptedCodings(req.header('accept-encoding'), codings)
      const page = await fetchFile(assets, 'index.html', accepted)
      return respondFile(page, pageHeaders(HTML, CONTENT_SECURITY_POLICY), req.method === 'HEAD')
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/assets/{file}',
      hide: true,
      request: { params: fileParams },
      responses: { 200: { description: 'A file of the page' } },
    }),
    async ({ req }) => {
      const { file } = req.valid('param')
      const type = TYPES[file.slice(file.lastIndexOf('.') + 1)]
      if (assets === undefined || type === undefined) throw new SandwireError('not_found', 'No such file')
      const accepted = acceptedCodings(req.header('accept-encoding'), codings)
      const found = await fetchFile(assets, `assets/${file}`, accepted)
      const etag = tagOf(file, found.coding)
      const headers = { ...FILE_HEADERS, etag }
      if (hasTag(req.header('if-none-match'), etag)) {
        await found.body?.cancel()
        return new Response(null, { status: 304, headers: { ...headers, vary: 'accept-encoding' } })
      }
      return respondFile(found, { ...headers, 'content-type': type }, req.method === 'HEAD')
    },
  )
}

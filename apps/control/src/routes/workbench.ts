import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import { acceptedCodings, type Coding, hasTag, nameInCoding, tagOf } from '../http/content-coding.ts'
import { frame } from '../pages/frame.ts'
import type { App } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { HTML, pageHeaders, respondPage } from '../http/respond.ts'

/** What gives out the files of the workbench, by path. */
export interface Assets {
  fetch(url: string): Promise<Response>
}

/** The kinds of files that a build makes. Everything else is not one of ours. */
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
}

/** Names of files hold a hash of what is in them, so a file never changes. */
const FOR_EVER = 'public, max-age=31536000, immutable'

/**
 * Scripts come from us alone, and nothing is sent anywhere else. Styles may be set by our scripts: xterm.js gives cells their colors
 * in attributes, and the editor makes its rules as it goes.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' blob: data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const NOT_HERE = frame(
  'Sandwire',
  '<h1>No workbench</h1><p>This server was built without its workbench. <a href="/signin">Sign in</a>, or use <code>sbx-stdio</code>.</p>',
)

/** What the workbench is served from. */
export interface WorkbenchSource {
  /** Absent: it is not served here. */
  readonly assets: Assets | undefined
  /** Codings that its files may lie beside themselves in. */
  readonly codings: readonly Coding[]
}

/** A file, or a coding of it: its bytes, and what is to be said of them. */
interface FoundFile {
  readonly body: ReadableStream | null
  readonly length: string | null
  readonly coding: Coding | undefined
}

/** The first that is there of the codings that a client takes, or the file as it is. */
async function fetchFile(assets: Assets, file: string, wished: readonly Coding[]): Promise<FoundFile> {
  for (const coding of [...wished, undefined]) {
    const name = coding === undefined ? file : nameInCoding(file, coding)
    const { status, body, headers } = await assets.fetch(`http://assets/${name}`)
    if (status === 200) return { body, length: headers.get('content-length'), coding }
    await body?.cancel()
  }
  throw new SandwireError('not_found', 'No such file')
}

/** Answers with bytes as they are, in whatever coding. A stream knows its length; only where there is none it has to be said. */
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

/** What is said of every file of the page. */
const FILE_HEADERS = {
  'cache-control': FOR_EVER,
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  // Opened by itself, a picture is a document too.
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

/** The workbench: one page that knows nothing of anybody, and the files it is made of. */
export function addWorkbenchRoutes(app: App, guardOf: GuardOf, { assets, codings }: WorkbenchSource): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/',
      hide: true,
      responses: { 200: { description: 'The page' } },
    }),
    async ({ req }) => {
      if (assets === undefined) return respondPage(NOT_HERE)
      const wished = acceptedCodings(req.header('accept-encoding'), codings)
      const page = await fetchFile(assets, 'index.html', wished)
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
      const wished = acceptedCodings(req.header('accept-encoding'), codings)
      const found = await fetchFile(assets, `assets/${file}`, wished)
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

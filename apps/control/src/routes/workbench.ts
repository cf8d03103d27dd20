import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import type { App } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { HTML, respondPage } from './page.ts'

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
 * Scripts come from us alone, and nothing is sent anywhere else. Styles may be set by our scripts: xterm.js gives cells their colours
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

const NOT_HERE = `<!doctype html><html lang="en"><title>Sandwire</title><link rel="stylesheet" href="/page.css">
<body><main><h1>Sandwire</h1><p>This server was built without its workbench. <a href="/signin">Sign in</a>, or use <code>sbx-stdio</code>.</p></main></body></html>
`

async function fetchFile(assets: Assets, file: string): Promise<Response> {
  const response = await assets.fetch(`http://assets/${file}`)
  if (response.status === 200) return response
  await response.body?.cancel()
  throw new SandwireError('not_found', 'No such file')
}

const fileParams = z.object({ file: z.string().regex(/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.[a-z0-9]+$/) })

/** The workbench: one page that knows nothing of anybody, and the files it is made of. */
export function addWorkbenchRoutes(app: App, guardOf: GuardOf, assets: Assets | undefined): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/',
      hide: true,
      responses: { 200: { description: 'The page' } },
    }),
    async () => {
      if (assets === undefined) return respondPage(NOT_HERE)
      const page = await fetchFile(assets, 'index.html')
      return respondPage(await page.text(), { type: HTML, policy: CONTENT_SECURITY_POLICY })
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
    async (context) => {
      const { file } = context.req.valid('param')
      const type = TYPES[file.slice(file.lastIndexOf('.') + 1)]
      if (assets === undefined || type === undefined) throw new SandwireError('not_found', 'No such file')
      const { body } = await fetchFile(assets, `assets/${file}`)
      return new Response(body, {
        headers: {
          'content-type': type,
          'cache-control': FOR_EVER,
          'x-content-type-options': 'nosniff',
          'cross-origin-resource-policy': 'same-origin',
          // Opened by itself, a picture is a document too.
          'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        },
      })
    },
  )
}

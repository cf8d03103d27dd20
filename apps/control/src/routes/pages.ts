import { FRONT_HTML, FRONT_JS, PAGE_CSS } from '../pages/front.ts'
import { JOIN_HTML, JOIN_JS } from '../pages/join.ts'
import { SIGN_IN_HTML, SIGN_IN_JS } from '../pages/sign-in.ts'
import type { App } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'

/** Nothing but our own files, and no frame around us. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const HTML = 'text/html; charset=utf-8'
const JS = 'text/javascript; charset=utf-8'

/** Every page and what it loads: path, type, text. */
const PAGES = [
  ['/', HTML, FRONT_HTML],
  ['/front.js', JS, FRONT_JS],
  ['/signin', HTML, SIGN_IN_HTML],
  ['/signin.js', JS, SIGN_IN_JS],
  ['/join', HTML, JOIN_HTML],
  ['/join.js', JS, JOIN_JS],
  ['/page.css', 'text/css; charset=utf-8', PAGE_CSS],
] as const

/** Two small pages until there is a workbench. They hold nothing that anybody may not see. */
export function addPageRoutes(app: App, guardOf: GuardOf): void {
  for (const [path, type, text] of PAGES)
    app.openapi(
      endpoint(guardOf, { method: 'get', path, hide: true, responses: { 200: { description: 'A page' } } }),
      () =>
        new Response(text, {
          headers: {
            'content-type': type,
            'content-security-policy': CONTENT_SECURITY_POLICY,
            'cross-origin-opener-policy': 'same-origin',
            'cross-origin-resource-policy': 'same-origin',
          },
        }),
    )
}

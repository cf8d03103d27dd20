import { JOIN_HTML, JOIN_JS } from '../pages/join.ts'
import { SIGN_IN_HTML, SIGN_IN_JS } from '../pages/sign-in.ts'
import { PAGE_CSS } from '../pages/frame.ts'
import type { App } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { HTML, respondPage } from '../http/respond.ts'

const JS = 'text/javascript; charset=utf-8'

/** Pages and their assets: path, content type, text. */
const PAGES = [
  ['/signin', HTML, SIGN_IN_HTML],
  ['/signin.js', JS, SIGN_IN_JS],
  ['/join', HTML, JOIN_HTML],
  ['/join.js', JS, JOIN_JS],
  ['/page.css', 'text/css; charset=utf-8', PAGE_CSS],
] as const

/** The sign-in and join pages, which are public. */
export function addPageRoutes(app: App, guardOf: GuardOf): void {
  for (const [path, type, text] of PAGES)
    app.openapi(
      endpoint(guardOf, { method: 'get', path, hide: true, responses: { 200: { description: 'A page' } } }),
      () => respondPage(text, { type }),
    )
}

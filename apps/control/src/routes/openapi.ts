import { SOFTWARE_VERSION } from '@sandwire/protocol'
import type { App } from './context.ts'
import { type GuardOf, refuseQuery } from './endpoint.ts'
import { policyOf } from './policies.ts'

const PATH = '/api/openapi.json'

/** The description of all routes, built at the first request: they do not change, and it takes long. */
export function addOpenApiRoute(app: App, guardOf: GuardOf): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' })
  let document: string | undefined
  app.get(PATH, guardOf(policyOf('get', PATH)), refuseQuery, (context) => {
    document ??= JSON.stringify(
      app.getOpenAPI31Document({
        openapi: '3.1.0',
        info: { title: 'Sandwire', version: SOFTWARE_VERSION, license: { name: 'Apache-2.0' } },
      }),
    )
    return context.body(document, 200, { 'content-type': 'application/json' })
  })
}

import { z } from '@hono/zod-openapi'
import type { CommandPolicy } from '../commands/command-policy.ts'
import type { App } from './context.ts'
import { endpoint, type GuardOf, json } from './endpoint.ts'

const templateList = z
  .object({
    templates: z.array(
      z.object({
        id: z.string(),
        title: z.string(),
        description: z.string(),
        mode: z.enum(['pipe', 'pty']),
        params: z.array(
          z.object({
            name: z.string(),
            description: z.string(),
            pattern: z
              .string()
              .optional()
              .openapi({ description: 'Regular expression for the whole value.' }),
            enum: z.array(z.string()).optional(),
            maxLength: z.int(),
            default: z.string().optional().openapi({ description: 'Absent: the parameter is required.' }),
          }),
        ),
      }),
    ),
  })
  .openapi('Templates')

/** `GET /api/templates`: commands that callers without the scope `exec` may run; their command lines stay private. */
export function addTemplateRoutes(app: App, guardOf: GuardOf, { templates }: CommandPolicy): void {
  const shown = templates.map(({ id, title, description, mode, params }) => ({
    id,
    title,
    description,
    mode,
    params: params.map(({ name, maxLength, pattern, options, fallback, description: text }) => ({
      name,
      description: text,
      maxLength,
      ...(pattern === undefined ? {} : { pattern }),
      ...(options === undefined ? {} : { enum: [...options] }),
      ...(fallback === undefined ? {} : { default: fallback }),
    })),
  }))
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/templates',
      responses: { 200: json(templateList, 'Command templates of the operator') },
    }),
    (context) => context.json({ templates: shown }, 200),
  )
}

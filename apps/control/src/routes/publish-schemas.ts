import { z } from '@hono/zod-openapi'
import { refSchema, repositorySchema } from '../run/repository.ts'

const publication = z.strictObject({
  branch: refSchema.openapi({ description: 'A new branch.' }),
  title: z
    .string()
    .trim()
    .min(1)
    .max(256)
    .regex(/^[^\p{Cc}]*$/u, 'expected one line')
    .openapi({
      description: 'First line of the commit, and title of the pull request.',
    }),
  body: z
    .string()
    .max(64 * 1024)
    .optional(),
  pullRequest: z.boolean().optional().openapi({ description: 'Also open a pull request (GitHub).' }),
})

export const publishBody = publication.openapi('Publish')
export const publishConversationBody = publication
  .extend({
    repo: repositorySchema.optional().openapi({
      description: 'The repository, to confirm it; required unless the conversation was created with one.',
    }),
  })
  .openapi('PublishConversation')

export const publishedView = z
  .object({
    repo: z.string(),
    commit: z.string(),
    branch: z.string(),
    pullRequest: z.object({ number: z.number(), url: z.string() }).nullable(),
  })
  .openapi('Published')

const texts = z.array(z.string()).readonly()

export const publishableView = z
  .object({
    repo: z.string(),
    pullRequest: z.boolean().openapi({ description: 'A pull request can be opened too.' }),
    problem: z.string().nullable().openapi({ description: 'Why the changes cannot be published.' }),
    files: texts.openapi({ description: 'Changed files, at most 1,000.' }),
    withheld: texts.openapi({ description: "Changed files with the agent's token, which are left out." }),
  })
  .openapi('Publishable')

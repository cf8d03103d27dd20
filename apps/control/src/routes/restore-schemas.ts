import { z } from '@hono/zod-openapi'
import type { RestorePointsView, RestoreTarget } from '../run/turns.ts'

/** Body of a request to restore the files of a conversation or run. */
export const restoreBody = z
  .union([
    z.strictObject({
      message: z
        .string()
        .min(1)
        .max(128)
        .openapi({ description: 'Id of the message; of a run also `task`.' }),
    }),
    z.strictObject({ undo: z.literal(true).openapi({ description: 'Undoes the last restore.' }) }),
  ])
  .openapi('RestoreFiles') satisfies z.ZodType<RestoreTarget>

export const restorePointsView = z
  .object({
    turns: z.array(
      z.object({
        message: z.string().openapi({ description: 'Id of the message.' }),
        version: z.int().nullable().openapi({ description: 'The files when the agent got the message.' }),
        problem: z.string().nullable().openapi({
          description: 'Why there is no version: `no_store`, or the code of an error.',
        }),
      }),
    ),
    canUndo: z.boolean(),
    isRestoring: z.boolean(),
  })
  .openapi('RestorePoints')

export function toRestorePoints({ turns, ...view }: RestorePointsView): z.infer<typeof restorePointsView> {
  return { ...view, turns: [...turns] }
}

import type { ReactElement } from 'react'
import { createCheckpoint } from '../api/versions.ts'
import { useParts } from '../state/context.ts'
import { versionTexts } from '../texts/versions.ts'
import { nameOf } from './describe-saved.ts'
import { NameDialog } from './name-dialog.tsx'

const { newCheckpoint: texts } = versionTexts
const CHECKPOINT_NAME = /^(?:[a-z](?:[a-z0-9-]*[a-z0-9])?)?$/

/** The form for a new checkpoint. */
export function CheckpointDialog({
  sandbox,
  onClose,
}: {
  readonly sandbox: string
  readonly onClose: (isCreated: boolean) => void
}): ReactElement {
  const { workbench } = useParts()
  return (
    <NameDialog
      texts={{ ...texts, yes: texts.create, busy: texts.creating }}
      pattern={CHECKPOINT_NAME}
      placeholder={texts.optional}
      run={async (name) => {
        const made = await createCheckpoint(sandbox, name)
        workbench.notify('info', texts.created(nameOf(made)))
        onClose(true)
      }}
      onClose={() => onClose(false)}
    />
  )
}

import type { ReactElement } from 'react'
import type { RestoreTarget } from '../api/conversations.ts'
import { Confirm } from '../shell/dialog.tsx'
import { agentTexts } from '../texts/agents.ts'

const { conversation: texts } = agentTexts

/** Asks whether to restore the files. */
export function RestoreConfirm({
  target,
  onAnswer,
}: {
  readonly target: RestoreTarget
  readonly onAnswer: (isYes: boolean) => void
}): ReactElement {
  return (
    <Confirm
      title={'undo' in target ? texts.undoQuestion : texts.restoreQuestion}
      yes={texts.restore}
      isDangerous
      onAnswer={onAnswer}
    >
      <p>{texts.restoreText}</p>
    </Confirm>
  )
}

import type { ReactElement } from 'react'
import { IconButton } from '../shell/icon.tsx'
import { agentTexts } from '../texts/agents.ts'

const { conversation: texts } = agentTexts

/** Tools that the agent of a conversation calls without asking. */
export function AllowedTools({
  tools,
  forget,
}: {
  readonly tools: readonly string[]
  readonly forget: (tool: string) => void
}): ReactElement | null {
  if (tools.length === 0) return null
  return (
    <p className="allowed-tools">
      <span className="dim">{texts.allowedTools}</span>
      {tools.map((tool) => (
        <span key={tool} className="allowed-tool">
          {tool}
          <IconButton icon="close" label={texts.forgetTool(tool)} onClick={() => forget(tool)} />
        </span>
      ))}
    </p>
  )
}

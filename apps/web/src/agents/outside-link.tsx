import { type ReactElement, type ReactNode, useState } from 'react'
import { Confirm } from '../shell/dialog.tsx'
import { agentTexts } from '../texts/agents.ts'

/** A link to another site. Its target is shown before it is opened. */
export function OutsideLink({
  href,
  text = agentTexts.link.text,
  children,
}: {
  readonly href: string
  /** Where the link comes from. */
  readonly text?: string
  readonly children: ReactNode
}): ReactElement {
  const [isAsking, setAsking] = useState(false)
  const url = URL.canParse(href) ? new URL(href) : undefined
  if (url === undefined || !['https:', 'http:'].includes(url.protocol))
    return (
      <span>
        {children} ({href})
      </span>
    )
  return (
    <>
      <button type="button" className="model-link" title={url.href} onClick={() => setAsking(true)}>
        {children}
      </button>
      {isAsking && (
        <Confirm
          title={agentTexts.link.title}
          yes={agentTexts.link.open}
          onAnswer={(isYes) => {
            setAsking(false)
            if (isYes) window.open(url.href, '_blank', 'noopener,noreferrer')
          }}
        >
          <p>{text}</p>
          <p className="model-url">{url.href}</p>
        </Confirm>
      )}
    </>
  )
}

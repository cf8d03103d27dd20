import { memo, type ReactElement } from 'react'
import { agentTexts } from '../texts/agents.ts'
import { describeInput, type ShownInput } from './tool-input.ts'
import type { TranscriptItem } from './transcript.ts'

const { tool: texts } = agentTexts

function isField(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Lines before and after an edit. */
function EditedLines({ before, after }: { readonly before: string; readonly after: string }): ReactElement {
  const lines = (text: string): readonly string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))
  return (
    <pre className="edited-lines" tabIndex={0}>
      {lines(before).map((line, at) => (
        <del key={`old ${at}`} aria-label={`${texts.old}: ${line}`}>{`- ${line}\n`}</del>
      ))}
      {lines(after).map((line, at) => (
        <ins key={`new ${at}`} aria-label={`${texts.new}: ${line}`}>{`+ ${line}\n`}</ins>
      ))}
    </pre>
  )
}

/** What a tool is called with. */
export function ToolInput({
  name,
  input,
}: {
  readonly name: string
  readonly input: unknown
}): ReactElement | null {
  const shown: ShownInput = describeInput(name, isField(input) ? input : {})
  switch (shown.kind) {
    case 'none':
      return null
    case 'edits':
      return (
        <>
          <p className="dim">{shown.path}</p>
          {shown.edits.map((edit, at) => (
            <EditedLines key={at} {...edit} />
          ))}
        </>
      )
    case 'text':
      return <pre tabIndex={0}>{shown.text}</pre>
  }
}

/** A tool call that opens to its input and result. */
export const ToolCall = memo(function ToolCall({
  item: { name, title, input, result, isSubagent },
}: {
  readonly item: Extract<TranscriptItem, { kind: 'tool' }>
}): ReactElement {
  const isFailed = result?.isError === true
  return (
    <details className={`tool-call ${isSubagent ? 'subagent' : ''} ${isFailed ? 'failed' : ''}`}>
      <summary>
        <span className="tool-name">{name}</span>
        {title !== name && (
          <span className="tool-title">
            {title.startsWith(`${name}: `) ? title.slice(name.length + 2) : title}
          </span>
        )}
        {result === undefined && <span className="dim">{texts.running}</span>}
        {isFailed && <span className="tool-error">{texts.error}</span>}
      </summary>
      <ToolInput name={name} input={input} />
      {result !== undefined && result.content !== '' && (
        <>
          <h3>{isFailed ? texts.error : texts.result}</h3>
          <pre tabIndex={0}>{result.content}</pre>
          {result.omittedChars > 0 && <p className="dim">{texts.omitted(result.omittedChars)}</p>}
        </>
      )}
    </details>
  )
})

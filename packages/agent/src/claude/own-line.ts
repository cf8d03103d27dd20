import { boundText, cutTexts } from '../bound.ts'
import { MAX_TEXT_CHARS, MAX_TOOL_RESULT_CHARS } from '../event.ts'
import { isRecord, type Json, recordAt, textAt } from '../json.ts'

/** Texts in the structured form of a tool's result, whose text is in the message already. */
const MAX_STRUCTURED_TEXT_CHARS = 1024
const MAX_STRUCTURED_CHARS = 32 * 1024

/**
 * A redacted line within bounds: texts are cut, the text of a tool's result to `MAX_TOOL_RESULT_CHARS` with the number of omitted
 * characters beside it, and the program's second, structured copy of it to its short parts.
 */
export function boundLine(line: Json): Json {
  const { tool_use_result: structured, message, ...rest } = line
  const content: unknown = recordAt(line, 'message')?.['content']
  const isUser = textAt(line, 'type') === 'user'
  const bound =
    isUser && isRecord(message) && Array.isArray(content)
      ? { ...message, content: content.map(boundBlock) }
      : message
  const cut = cutTexts(
    { ...rest, ...(message === undefined ? {} : { message: bound }) },
    // Results are bound already, and have a note of what was omitted.
    MAX_TEXT_CHARS,
  )
  return {
    ...(isRecord(cut) ? cut : {}),
    ...(structured === undefined ? {} : { tool_use_result: boundStructured(structured) }),
  }
}

/** The text of a tool's result, whose content is a text or a list of blocks. */
export function resultText(content: unknown): string {
  if (typeof content === 'string') return content.toWellFormed()
  if (!Array.isArray(content)) return ''
  const blocks: readonly unknown[] = content
  return blocks
    .map((block) =>
      isRecord(block) ? (textAt(block, 'text') ?? `[${textAt(block, 'type') ?? 'block'}]`) : '',
    )
    .join('\n')
    .toWellFormed()
}

function boundBlock(block: unknown): unknown {
  if (!isRecord(block) || block['type'] !== 'tool_result') return block
  const { text, omittedChars } = boundText(resultText(block['content']), MAX_TOOL_RESULT_CHARS)
  if (omittedChars > 0) return { ...block, content: text, omittedChars }
  return cutTexts(block, MAX_TOOL_RESULT_CHARS)
}

function boundStructured(structured: unknown): unknown {
  const cut = cutTexts(structured, MAX_STRUCTURED_TEXT_CHARS)
  if (!isRecord(cut) || JSON.stringify(cut).length <= MAX_STRUCTURED_CHARS) return cut
  const { type } = cut
  return { ...(typeof type === 'string' ? { type } : {}), omitted: true }
}

import MarkdownIt, { type Token } from 'markdown-it'
import { createElement, memo, type ReactElement, type ReactNode } from 'react'
import { agentTexts } from '../texts/agents.ts'
import { OutsideLink } from './outside-link.tsx'

/** Longer texts are shown as they are: parsing them would take too long. */
const MAX_PARSED_CHARS = 16 * 1024

// HTML becomes text. The parser takes linear time and limits nesting.
const parser = new MarkdownIt({ html: false, linkify: true })
/** The parser drops what is nested deeper than 100. */
const MAX_LEVEL = 90

function attribute(token: Token, name: string): string {
  return String(token.attrGet(name) ?? '')
}

/** Elements that text may become. */
const TAGS = new Set(['p', 'ul', 'li', 'blockquote', 'strong', 'em', 's', 'thead', 'tbody', 'tr', 'th', 'td'])

/** An element whose end has not come yet. */
interface Open {
  readonly token: Token
  readonly children: ReactNode[]
}

function drawElement({ token, children }: Open, key: number): ReactNode {
  const { tag, type } = token
  if (type === 'link_open')
    return (
      <OutsideLink key={key} href={attribute(token, 'href')}>
        {children}
      </OutsideLink>
    )
  // The page has its own headings above these.
  if (type === 'heading_open')
    return createElement(`h${Math.min(Number(tag.slice(1)) + 2, 6)}`, { key }, children)
  if (tag === 'ol')
    return (
      <ol key={key} start={Number(token.attrGet('start') ?? 1)}>
        {children}
      </ol>
    )
  if (tag === 'table')
    return (
      <div key={key} className="model-table">
        <table>{children}</table>
      </div>
    )
  return TAGS.has(tag) && !token.hidden ? createElement(tag, { key }, children) : children
}

/** A token without children of its own kind. */
function drawLeaf(token: Token, key: number): ReactNode {
  switch (token.type) {
    case 'inline':
      return drawTokens(token.children ?? [])
    case 'code_inline':
      return <code key={key}>{token.content}</code>
    case 'code_block':
    case 'fence':
      return (
        <pre key={key} tabIndex={0}>
          {token.content.replace(/\n$/, '')}
        </pre>
      )
    case 'hr':
      return <hr key={key} />
    case 'hardbreak':
      return <br key={key} />
    case 'softbreak':
      return '\n'
    case 'image': {
      // Never fetched: it would tell another server that the text was read.
      const href = attribute(token, 'src')
      return (
        <OutsideLink key={key} href={href}>
          {agentTexts.image(token.content === '' ? href : token.content)}
        </OutsideLink>
      )
    }
    default:
      return token.content
  }
}

/** Builds elements from the parser's flat list, in which elements have a start and an end. */
function drawTokens(tokens: readonly Token[]): ReactNode[] {
  const root: ReactNode[] = []
  const open: Open[] = []
  tokens.forEach((token, key) => {
    if (token.nesting === 1) return open.push({ token, children: [] })
    const ended = token.nesting === -1 ? open.pop() : undefined
    const drawn = ended === undefined ? drawLeaf(token, key) : drawElement(ended, key)
    return (open.at(-1)?.children ?? root).push(drawn)
  })
  return root
}

/** Text of a model as Markdown. It becomes elements of a fixed set: HTML is text, images are not loaded. */
export const Markdown = memo(function Markdown({ text }: { readonly text: string }): ReactElement {
  const tokens = text.length > MAX_PARSED_CHARS ? undefined : parser.parse(text, {})
  if (tokens === undefined || tokens.some(({ level }) => level > MAX_LEVEL))
    return <pre tabIndex={0}>{text}</pre>
  return <div className="model-text">{drawTokens(tokens)}</div>
})

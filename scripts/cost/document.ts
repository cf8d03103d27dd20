const BEGIN = '<!-- npm run cost -- --write -->'
const END = '<!-- /npm run cost -->'

/** Replaces the text between the cost markers of a document. */
export function replaceCosts(document: string, costs: string): string {
  const from = document.indexOf(BEGIN)
  const to = document.indexOf(END)
  if (from < 0 || to < from) throw new Error('Cannot find the cost markers in the document')
  return `${document.slice(0, from)}${BEGIN}\n\n${costs}\n\n${document.slice(to)}`
}

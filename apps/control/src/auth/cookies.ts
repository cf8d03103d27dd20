/** Value of a cookie; undefined without it, empty when it is there more than once, since then one of them is not ours. */
export function readCookie(headers: Headers, name: string): string | undefined {
  const values = (headers.get('cookie') ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
  const [value] = values
  return values.length > 1 ? '' : value
}

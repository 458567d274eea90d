/** The header by which a caller says which span a call belongs to: traceparent of W3C Trace Context. Pure. */

export interface TraceParent {
  /** As much of it as is known here: 55 characters. */
  readonly text: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Two digits in hex. */
  readonly flags: string;
}

/** Version ff is none, version 00 ends with the flags, and later ones may say more behind them. */
const TRACE_PARENT = /^(?!ff|00.{54})[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?=-|$)/;

/** null: it is none. */
export const traceParentIn = (header: string): TraceParent | null => {
  const [text = '', traceId = '', spanId = '', flags = ''] = TRACE_PARENT.exec(header) ?? [];
  return text === '' ? null : { text, traceId, spanId, flags };
};

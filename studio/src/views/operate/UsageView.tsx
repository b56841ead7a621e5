export default function UsageView() {
  return null;
}

export default function StoreView() {
  return null;
}

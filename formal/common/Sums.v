(** Finite sums of reals over the first n numbers 0, .., n - 1, and Kronecker's delta.

    Vectors are functions from nat to R, matrices functions of two numbers; their sizes are arguments of the sums. *)

Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Fixpoint Sum (n : nat) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S k => Sum k f + f k
  end.

Definition kron (i j : nat) : R := if Nat.eqb i j then 1 else 0.

Definition dot (n : nat) (u v : nat -> R) : R := Sum n (fun i => u i * v i).

Definition norm (n : nat) (v : nat -> R) : R := sqrt (dot n v v).

(** The sum over the first n numbers without one of them. *)
Definition Others (n skip : nat) (f : nat -> R) : R := Sum n (fun i => if Nat.eqb i skip then 0 else f i).

Lemma kron_same i : kron i i = 1.
Proof. unfold kron. now rewrite Nat.eqb_refl. Qed.

Lemma kron_other i j : i <> j -> kron i j = 0.
Proof. intro H. unfold kron. apply Nat.eqb_neq in H. now rewrite H. Qed.

Lemma kron_sym i j : kron i j = kron j i.
Proof. unfold kron. now rewrite Nat.eqb_sym. Qed.

Lemma Sum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> Sum n f = Sum n g.
Proof.
  induction n; intro H; simpl; [reflexivity|].
  rewrite IHn by (intros; apply H; lia). now rewrite (H n) by lia.
Qed.

Lemma Sum_plus n f g : Sum n (fun i => f i + g i) = Sum n f + Sum n g.
Proof. induction n; simpl; [ring|]. rewrite IHn. ring. Qed.

Lemma Sum_minus n f g : Sum n (fun i => f i - g i) = Sum n f - Sum n g.
Proof. induction n; simpl; [ring|]. rewrite IHn. ring. Qed.

Lemma Sum_opp n f : Sum n (fun i => - f i) = - Sum n f.
Proof. induction n; simpl; [ring|]. rewrite IHn. ring. Qed.

Lemma Sum_scal n c f : Sum n (fun i => c * f i) = c * Sum n f.
Proof. induction n; simpl; [ring|]. rewrite IHn. ring. Qed.

Lemma Sum_scal_r n c f : Sum n (fun i => f i * c) = Sum n f * c.
Proof. induction n; simpl; [ring|]. rewrite IHn. ring. Qed.

Lemma Sum_const n c : Sum n (fun _ => c) = INR n * c.
Proof. induction n; [simpl; ring|]. cbn [Sum]. rewrite IHn, S_INR. ring. Qed.

Lemma Sum_zero n f : (forall i, (i < n)%nat -> f i = 0) -> Sum n f = 0.
Proof. intro H. rewrite (Sum_ext n f (fun _ => 0)) by exact H. rewrite Sum_const. ring. Qed.

Lemma Sum_swap n m f :
  Sum n (fun i => Sum m (fun j => f i j)) = Sum m (fun j => Sum n (fun i => f i j)).
Proof.
  induction n; simpl.
  - symmetry. apply Sum_zero. reflexivity.
  - rewrite IHn, <- Sum_plus. reflexivity.
Qed.

Lemma Sum_kron n j f : (j < n)%nat -> Sum n (fun i => kron i j * f i) = f j.
Proof.
  induction n; intro H; [lia|]. simpl. destruct (Nat.eq_dec j n) as [->|D].
  - rewrite kron_same, Sum_zero; [ring|]. intros i L. rewrite kron_other by lia. ring.
  - rewrite IHn by lia. rewrite (kron_other n j) by lia. ring.
Qed.

Lemma Sum_kron_r n j f : (j < n)%nat -> Sum n (fun i => kron j i * f i) = f j.
Proof.
  intro H. rewrite <- (Sum_kron n j f H). apply Sum_ext. intros. now rewrite kron_sym.
Qed.

Lemma Sum_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= Sum n f.
Proof.
  induction n; intro H; simpl; [lra|].
  assert (0 <= Sum n f) by (apply IHn; intros; apply H; lia).
  assert (0 <= f n) by (apply H; lia). lra.
Qed.

Lemma Sum_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> Sum n f <= Sum n g.
Proof.
  induction n; intro H; simpl; [lra|].
  assert (Sum n f <= Sum n g) by (apply IHn; intros; apply H; lia).
  assert (f n <= g n) by (apply H; lia). lra.
Qed.

Lemma Sum_ge_term n f j :
  (forall i, (i < n)%nat -> 0 <= f i) -> (j < n)%nat -> f j <= Sum n f.
Proof.
  induction n; intros H L; [lia|]. simpl.
  assert (0 <= Sum n f) by (apply Sum_nonneg; intros; apply H; lia).
  destruct (Nat.eq_dec j n) as [->|D]; [lra|].
  assert (f j <= Sum n f) by (apply IHn; [intros; apply H; lia|lia]).
  assert (0 <= f n) by (apply H; lia). lra.
Qed.

Lemma Sum_pos n f j :
  (forall i, (i < n)%nat -> 0 <= f i) -> (j < n)%nat -> 0 < f j -> 0 < Sum n f.
Proof. intros H L P. pose proof (Sum_ge_term n f j H L). lra. Qed.

Lemma Sum_all_pos n f : (0 < n)%nat -> (forall i, (i < n)%nat -> 0 < f i) -> 0 < Sum n f.
Proof.
  intros L H. apply (Sum_pos n f 0%nat); [|exact L|apply H; exact L].
  intros. apply Rlt_le. now apply H.
Qed.

(** Others *)

Lemma Others_split n k f : (k < n)%nat -> Sum n f = f k + Others n k f.
Proof.
  intro L. unfold Others.
  rewrite <- (Sum_kron n k f L), <- Sum_plus. apply Sum_ext. intros i _.
  unfold kron. destruct (Nat.eqb i k); ring.
Qed.

Lemma Others_ext n k f g :
  (forall i, (i < n)%nat -> i <> k -> f i = g i) -> Others n k f = Others n k g.
Proof.
  intro H. apply Sum_ext. intros i L. destruct (Nat.eqb_spec i k); [reflexivity|]. now apply H.
Qed.

Lemma Others_scal n k c f : Others n k (fun i => c * f i) = c * Others n k f.
Proof.
  unfold Others. rewrite <- Sum_scal. apply Sum_ext. intros i _. destruct (Nat.eqb i k); ring.
Qed.

Lemma Others_opp n k f : Others n k (fun i => - f i) = - Others n k f.
Proof.
  unfold Others. rewrite <- Sum_opp. apply Sum_ext. intros i _. destruct (Nat.eqb i k); ring.
Qed.

Lemma Others_const n k c : (k < n)%nat -> Others n k (fun _ => c) = (INR n - 1) * c.
Proof.
  intro L. pose proof (Others_split n k (fun _ => c) L) as H. rewrite Sum_const in H. lra.
Qed.

Lemma Others_plus n k f g : Others n k (fun i => f i + g i) = Others n k f + Others n k g.
Proof.
  unfold Others. rewrite <- Sum_plus. apply Sum_ext. intros i _. destruct (Nat.eqb i k); ring.
Qed.

(** Derivatives of sums *)

Lemma is_derive_Sum n (f : nat -> R -> R) (d : nat -> R) x :
  (forall i, (i < n)%nat -> is_derive (f i) x (d i)) ->
  is_derive (fun s => Sum n (fun i => f i s)) x (Sum n d).
Proof.
  induction n; intro H; simpl.
  - apply (is_derive_const 0).
  - apply (is_derive_plus (fun s => Sum n (fun i => f i s)) (f n)).
    + apply IHn. intros. apply H. lia.
    + apply H. lia.
Qed.

Lemma dot_sym n u v : dot n u v = dot n v u.
Proof. apply Sum_ext. intros. ring. Qed.

Lemma dot_nonneg n v : 0 <= dot n v v.
Proof. apply Sum_nonneg. intros. apply Rle_0_sqr. Qed.

Lemma norm_sqr n v : norm n v * norm n v = dot n v v.
Proof. apply sqrt_sqrt, dot_nonneg. Qed.

(** Two vectors differ somewhere, or nowhere. *)
Lemma differ (a b : nat -> R) m :
  (exists l, (l < m)%nat /\ a l <> b l) \/ forall l, (l < m)%nat -> a l = b l.
Proof.
  induction m as [|m [[l [L N]]|A]].
  - right. intros l L. lia.
  - left. exists l. split; [lia|exact N].
  - destruct (Req_dec (a m) (b m)) as [E|N].
    + right. intros l L. destruct (Nat.eq_dec l m) as [->|]; [exact E|]. apply A. lia.
    + left. exists m. split; [lia|exact N].
Qed.

(** The place of a least entry. *)
Lemma least_entry (f : nat -> R) m : (0 < m)%nat -> exists i, (i < m)%nat /\ forall j, (j < m)%nat -> f i <= f j.
Proof.
  induction m as [|m IH]; intro P; [lia|]. destruct (Nat.eq_dec m 0) as [->|N].
  - exists 0%nat. split; [lia|]. intros j L. replace j with 0%nat by lia. lra.
  - destruct IH as [i [L H]]; [lia|]. destruct (Rle_lt_dec (f i) (f m)) as [A|A].
    + exists i. split; [lia|]. intros j Lj. destruct (Nat.eq_dec j m) as [->|]; [exact A|apply H; lia].
    + exists m. split; [lia|]. intros j Lj. destruct (Nat.eq_dec j m) as [->|]; [lra|].
      apply Rlt_le, Rlt_le_trans with (1 := A), H. lia.
Qed.

(** Cauchy's and Schwarz's inequality for a sum: (sum f)^2 <= n sum f^2. *)
Lemma cauchy_schwarz n u v : dot n u v ^ 2 <= dot n u u * dot n v v.
Proof.
  pose proof (dot_nonneg n u) as Pu. pose proof (dot_nonneg n v) as Pv.
  assert (Q : forall x, 0 <= dot n u u * x ^ 2 - 2 * x * dot n u v + dot n v v).
  { intro x. replace (dot n u u * x ^ 2 - 2 * x * dot n u v + dot n v v)
      with (Sum n (fun i => (u i * x - v i) * (u i * x - v i))).
    - apply Sum_nonneg. intros. apply Rle_0_sqr.
    - unfold dot. rewrite <- Sum_scal_r, <- Sum_scal, <- Sum_minus, <- Sum_plus. apply Sum_ext. intros. ring. }
  destruct (Req_dec (dot n u u) 0) as [Z|N].
  - rewrite Z in *. assert (dot n u v = 0); [|nra].
    destruct (Req_dec (dot n u v) 0) as [|D]; [easy|exfalso].
    pose proof (Q ((dot n v v + 1) / (2 * dot n u v))) as B.
    replace (0 * ((dot n v v + 1) / (2 * dot n u v)) ^ 2 - 2 * ((dot n v v + 1) / (2 * dot n u v)) * dot n u v + dot n v v)
      with (-1) in B by (field; exact D). lra.
  - pose proof (Q (dot n u v / dot n u u)) as B.
    replace (dot n u u * (dot n u v / dot n u u) ^ 2 - 2 * (dot n u v / dot n u u) * dot n u v + dot n v v)
      with ((dot n u u * dot n v v - dot n u v ^ 2) / dot n u u) in B by (field; exact N).
    assert (0 < dot n u u) by lra.
    apply (Rmult_le_compat_l (dot n u u)) in B; [|lra].
    replace (dot n u u * ((dot n u u * dot n v v - dot n u v ^ 2) / dot n u u))
      with (dot n u u * dot n v v - dot n u v ^ 2) in B by (field; exact N). lra.
Qed.
